#include "device/driver.h"

#include <dlfcn.h>

#include <cstdio>
#include <string>

#include "base/log.h"

namespace gpurdma {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";

// Fills function pointers by name.
class Finder {
 public:
  explicit Finder(void* library) : library_(library) {}

  template <class Function>
  bool optional(Function* function, const char* name) {
    *function = reinterpret_cast<Function>(dlsym(library_, name));
    return *function != nullptr;
  }
  template <class Function>
  void needed(Function* function, const char* name) {
    if (!optional(function, name) && !missing_) missing_ = name;
  }
  const char* missing() const { return missing_; }  // the first one; nullptr: none

 private:
  void* library_;
  const char* missing_ = nullptr;
};

// nullptr: all that is needed is there; otherwise the name of what is not.
const char* fill(void* library, Driver* d) {
  Finder f(library);
  f.needed(&d->get_error_name, "cuGetErrorName");
  f.needed(&d->get_error_string, "cuGetErrorString");
  f.needed(&d->driver_get_version, "cuDriverGetVersion");
  f.needed(&d->device_get, "cuDeviceGet");
  f.needed(&d->device_get_attribute, "cuDeviceGetAttribute");
  f.needed(&d->device_get_name, "cuDeviceGetName");
  f.needed(&d->primary_get_state, "cuDevicePrimaryCtxGetState");
  f.needed(&d->primary_retain, "cuDevicePrimaryCtxRetain");
  f.needed(&d->primary_release, "cuDevicePrimaryCtxRelease_v2");
  f.needed(&d->ctx_get_current, "cuCtxGetCurrent");
  f.needed(&d->ctx_get_device, "cuCtxGetDevice");
  f.needed(&d->ctx_push_current, "cuCtxPushCurrent_v2");
  f.needed(&d->ctx_pop_current, "cuCtxPopCurrent_v2");
  f.optional(&d->ctx_get_id, "cuCtxGetId");
  f.needed(&d->pointer_get_attributes, "cuPointerGetAttributes");
  f.needed(&d->mem_alloc, "cuMemAlloc_v2");
  f.needed(&d->mem_free, "cuMemFree_v2");
  f.needed(&d->mem_host_register, "cuMemHostRegister_v2");
  f.needed(&d->mem_host_unregister, "cuMemHostUnregister");
  f.needed(&d->mem_host_get_device_pointer, "cuMemHostGetDevicePointer_v2");
  f.needed(&d->stream_create, "cuStreamCreateWithPriority");
  f.needed(&d->stream_destroy, "cuStreamDestroy_v2");
  f.needed(&d->stream_query, "cuStreamQuery");
  f.needed(&d->stream_synchronize, "cuStreamSynchronize");
  f.needed(&d->stream_wait_event, "cuStreamWaitEvent");
  f.needed(&d->stream_is_capturing, "cuStreamIsCapturing");
  f.needed(&d->exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
  f.optional(&d->stream_write_value, "cuStreamWriteValue32_v2");
  f.needed(&d->event_create, "cuEventCreate");
  f.needed(&d->event_destroy, "cuEventDestroy_v2");
  f.needed(&d->event_record, "cuEventRecord");
  f.needed(&d->event_query, "cuEventQuery");
  f.needed(&d->memcpy_async, "cuMemcpyAsync");
  f.needed(&d->memcpy_peer_async, "cuMemcpyPeerAsync");
  f.needed(&d->memcpy_2d_async, "cuMemcpy2DAsync_v2");
  f.needed(&d->module_load_data, "cuModuleLoadData");
  f.needed(&d->module_unload, "cuModuleUnload");
  f.needed(&d->module_get_function, "cuModuleGetFunction");
  f.optional(&d->func_load, "cuFuncLoad");
  f.needed(&d->launch_kernel, "cuLaunchKernel");
  return f.missing();
}

}  // namespace

const char* Driver::text(CUresult result) const {
  thread_local char line[160];
  const char *name = nullptr, *words = nullptr;
  if (get_error_name(result, &name) != CUDA_SUCCESS || !name) {
    std::snprintf(line, sizeof line, "CUDA error %d", int(result));
  } else {
    const bool known = get_error_string(result, &words) == CUDA_SUCCESS && words;
    std::snprintf(line, sizeof line, "%s (%s)", name, known ? words : "no words for it");
  }
  return line;
}

int Driver::version() const {
  int version = 0;
  return driver_get_version(&version) == CUDA_SUCCESS ? version : 0;
}

void LibraryCloser::operator()(void* library) const { dlclose(library); }

// Looking for a library by name searches the file system, so it is done only when something was loaded. A driver that
// lacks functions is not looked at again.
const Driver* DriverWatch::look() {
  if (library_) return nullptr;
  struct Loaded {
    unsigned long long objects = 0;
    const link_map* last = nullptr;
    std::string name;
  } loaded;
  // While this calls back, nothing is loaded or unloaded.
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* argument) {
        Loaded& loaded = *static_cast<Loaded*>(argument);
        loaded.objects = info->dlpi_adds;
        loaded.last = _r_debug.r_map;
        while (loaded.last->l_next) loaded.last = loaded.last->l_next;
        loaded.name = loaded.last->l_name;
        return 1;
      },
      &loaded);
  if (loaded.objects == objects_) return nullptr;
  objects_ = loaded.objects;
  kept_.reset(dlopen(loaded.name.c_str(), RTLD_LAZY | RTLD_NOLOAD));
  last_ = kept_.get() == loaded.last ? loaded.last : nullptr;
  library_.reset(dlopen(kLibrary, RTLD_LAZY | RTLD_NOLOAD));
  if (!library_) return nullptr;
  auto driver = std::make_unique<Driver>();
  if (const char* missing = fill(library_.get(), driver.get())) {
    GPURDMA_LOG(error,
                "the CUDA driver of this machine has no %s: gpurdma needs one of CUDA 11.0 or newer, and takes all "
                "memory for host memory",
                missing);
    return nullptr;
  }
  driver_ = std::move(driver);
  last_ = nullptr;
  kept_.reset();
  return driver_.get();
}

}  // namespace gpurdma
