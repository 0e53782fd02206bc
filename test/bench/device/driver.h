// The CUDA driver for the programs in this directory: loaded when they run, so that they are built without one.
#pragma once
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace bench {

class Driver {
 public:
  // nullptr: ready, with the primary context of the first GPU current. Otherwise why not.
  const char* open() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return "there is no CUDA driver";
    const bool all =
        find(library, "cuInit", init) && find(library, "cuDeviceGet", device_get) &&
        find(library, "cuDeviceGetName", device_name) && find(library, "cuDriverGetVersion", version) &&
        find(library, "cuDevicePrimaryCtxRetain", retain) && find(library, "cuDevicePrimaryCtxRelease_v2", release) &&
        find(library, "cuCtxSetCurrent", set_current) && find(library, "cuMemAlloc_v2", allocate) &&
        find(library, "cuMemFree_v2", free_device) && find(library, "cuMemHostAlloc", allocate_pinned) &&
        find(library, "cuMemFreeHost", free_pinned) && find(library, "cuMemcpyHtoD_v2", up) &&
        find(library, "cuMemcpyDtoH_v2", down) && find(library, "cuMemcpyHtoDAsync_v2", up_async) &&
        find(library, "cuMemcpyDtoHAsync_v2", down_async) && find(library, "cuMemcpyDtoDAsync_v2", within_async) &&
        find(library, "cuStreamCreate", stream_create) && find(library, "cuStreamDestroy_v2", stream_destroy) &&
        find(library, "cuStreamSynchronize", synchronize);
    if (!all) return "the CUDA driver is too old";
    if (init(0) != CUDA_SUCCESS || device_get(&device, 0) != CUDA_SUCCESS) return "there is no GPU";
    if (retain(&context, device) != CUDA_SUCCESS || set_current(context) != CUDA_SUCCESS)
      return "the GPU does not start";
    return nullptr;
  }
  void close() { release(device); }

  // For calls that must not fail here.
  static void must(CUresult result) {
    if (result == CUDA_SUCCESS) return;
    std::printf("FAIL the CUDA driver returned error %d\n", int(result));
    std::exit(1);
  }
  char* device_memory(size_t bytes) {
    CUdeviceptr address = 0;
    must(allocate(&address, bytes));
    return reinterpret_cast<char*>(address);
  }
  char* pinned_memory(size_t bytes) {
    void* address = nullptr;
    must(allocate_pinned(&address, bytes, 0));
    return static_cast<char*>(address);
  }
  static CUdeviceptr at(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

  CUdevice device = 0;
  CUcontext context = nullptr;
  decltype(&cuInit) init;
  decltype(&cuDeviceGet) device_get;
  decltype(&cuDeviceGetName) device_name;
  decltype(&cuDriverGetVersion) version;
  decltype(&cuDevicePrimaryCtxRetain) retain;
  decltype(&cuDevicePrimaryCtxRelease) release;
  decltype(&cuCtxSetCurrent) set_current;
  decltype(&cuMemAlloc) allocate;
  decltype(&cuMemFree) free_device;
  decltype(&cuMemHostAlloc) allocate_pinned;
  decltype(&cuMemFreeHost) free_pinned;
  decltype(&cuMemcpyHtoD) up;
  decltype(&cuMemcpyDtoH) down;
  decltype(&cuMemcpyHtoDAsync) up_async;
  decltype(&cuMemcpyDtoHAsync) down_async;
  decltype(&cuMemcpyDtoDAsync) within_async;
  decltype(&cuStreamCreate) stream_create;
  decltype(&cuStreamDestroy) stream_destroy;
  decltype(&cuStreamSynchronize) synchronize;

 private:
  template <class Function>
  static bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
  }
};

}  // namespace bench
