// The functions of the CUDA driver that gpurdma calls, as the application's own driver library offers them.
//
// The library is never loaded and the driver never started here: a process that has not done so itself has no device
// memory. Drivers of CUDA 11.0 and newer have all that is needed; what came later is null where it lacks, and says so
// below. Every function may be called from any thread.
#pragma once
#include <cuda.h>
#include <link.h>

#include <memory>

namespace gpurdma {

struct Driver {
  decltype(&cuGetErrorName) get_error_name;
  decltype(&cuGetErrorString) get_error_string;
  decltype(&cuDriverGetVersion) driver_get_version;

  decltype(&cuDeviceGet) device_get;
  decltype(&cuDeviceGetAttribute) device_get_attribute;
  decltype(&cuDeviceGetName) device_get_name;
  decltype(&cuDevicePrimaryCtxGetState) primary_get_state;
  decltype(&cuDevicePrimaryCtxRetain) primary_retain;
  decltype(&cuDevicePrimaryCtxRelease) primary_release;

  decltype(&cuCtxGetCurrent) ctx_get_current;
  decltype(&cuCtxGetDevice) ctx_get_device;
  decltype(&cuCtxPushCurrent) ctx_push_current;
  decltype(&cuCtxPopCurrent) ctx_pop_current;
  CUresult (*ctx_get_id)(CUcontext context, unsigned long long* id);  // CUDA 12.0

  decltype(&cuPointerGetAttributes) pointer_get_attributes;
  decltype(&cuMemAlloc) mem_alloc;
  decltype(&cuMemFree) mem_free;
  decltype(&cuMemHostRegister) mem_host_register;
  decltype(&cuMemHostUnregister) mem_host_unregister;
  decltype(&cuMemHostGetDevicePointer) mem_host_get_device_pointer;

  decltype(&cuStreamCreateWithPriority) stream_create;
  decltype(&cuStreamDestroy) stream_destroy;
  decltype(&cuStreamQuery) stream_query;
  decltype(&cuStreamSynchronize) stream_synchronize;
  decltype(&cuStreamWaitEvent) stream_wait_event;
  decltype(&cuStreamIsCapturing) stream_is_capturing;
  decltype(&cuThreadExchangeStreamCaptureMode) exchange_capture_mode;
  CUresult (*stream_write_value)(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags);  // CUDA 11.7
  decltype(&cuEventCreate) event_create;
  decltype(&cuEventDestroy) event_destroy;
  decltype(&cuEventRecord) event_record;
  decltype(&cuEventQuery) event_query;

  decltype(&cuMemcpyAsync) memcpy_async;
  decltype(&cuMemcpyPeerAsync) memcpy_peer_async;
  decltype(&cuMemcpy2DAsync) memcpy_2d_async;

  decltype(&cuModuleLoadData) module_load_data;
  decltype(&cuModuleUnload) module_unload;
  decltype(&cuModuleGetFunction) module_get_function;
  CUresult (*func_load)(CUfunction function);  // CUDA 12.4
  decltype(&cuLaunchKernel) launch_kernel;

  // "CUDA_ERROR_INVALID_VALUE (invalid argument)", in memory of the calling thread that its next call overwrites.
  const char* text(CUresult result) const;
  // The CUDA release that the driver is of, as 12040; 0: unknown.
  int version() const;
};

// Closes what dlopen gave.
struct LibraryCloser {
  void operator()(void* library) const;
};

// Looks out for the driver library that the application loads, at any time.
//
// The loader appends what it loads to a list, so that nothing has come where the last entry is still the last one. It
// is kept loaded for as long as it is looked at. One thread at a time; the application may load what it likes
// meanwhile.
class DriverWatch {
 public:
  // nullptr: it is not there yet. Cost: nothing that can be measured.
  const Driver* driver() {
    if (driver_) return driver_.get();
    return last_ && !__atomic_load_n(&last_->l_next, __ATOMIC_RELAXED) ? nullptr : look();
  }

 private:
  const Driver* look();

  const link_map* last_ = nullptr;  // of the list; kept_ keeps it
  unsigned long long objects_ = 0;  // loaded so far, when we last looked
  std::unique_ptr<void, LibraryCloser> kept_, library_;
  std::unique_ptr<const Driver> driver_;
};

// The work of a process that ends goes with the driver, and a context that the application destroys takes all that was
// made in it along: no failures to speak of.
inline bool gone(CUresult result) {
  return result == CUDA_ERROR_DEINITIALIZED || result == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
         result == CUDA_ERROR_INVALID_CONTEXT;
}

// While it lives, `context` is the calling thread's current one, and what is called disturbs no capture of a graph that
// is under way. Then all is as it was.
class Entered {
 public:
  Entered(const Driver& driver, CUcontext context) : driver_(driver), result_(driver.ctx_push_current(context)) {
    if (result_ == CUDA_SUCCESS) (void)driver_.exchange_capture_mode(&mode_);
  }
  ~Entered() {
    if (result_ != CUDA_SUCCESS) return;
    (void)driver_.exchange_capture_mode(&mode_);
    CUcontext popped;
    (void)driver_.ctx_pop_current(&popped);
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
  CUresult result() const { return result_; }

 private:
  const Driver& driver_;
  CUresult result_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace gpurdma
