// The thread's device and context, and the last error.
#include <mutex>

#include "emu/runtime/runtime.h"

namespace emu_runtime {
namespace {

constexpr int kMostDevices = 64;

struct Primary {
  CUcontext context = nullptr;
  bool retained = false;  // false again after cudaDeviceReset, though threads may still have it current
};

std::mutex mutex;
Primary primaries[kMostDevices];
thread_local int chosen_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

CUresult use_primary(int device) {
  if (device < 0 || device >= kMostDevices) return CUDA_ERROR_INVALID_DEVICE;
  const std::lock_guard<std::mutex> lock(mutex);
  Primary& primary = primaries[device];
  if (!primary.retained) {
    CUdevice handle;
    CUresult result = cuDeviceGet(&handle, device);
    if (result == CUDA_SUCCESS) result = cuDevicePrimaryCtxRetain(&primary.context, handle);
    if (result != CUDA_SUCCESS) return result;
    primary.retained = true;
  }
  return cuCtxSetCurrent(primary.context);
}

bool was_reset(CUcontext context) {
  const std::lock_guard<std::mutex> lock(mutex);
  for (const Primary& primary : primaries)
    if (primary.context == context) return !primary.retained;
  return false;
}

// Whether the thread has a context that can be used.
bool has_context() {
  CUcontext context = nullptr;
  return cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr && !was_reset(context);
}

CUresult reset(int device) {
  const std::lock_guard<std::mutex> lock(mutex);
  CUdevice handle;
  const CUresult result = cuDeviceGet(&handle, device);
  if (result != CUDA_SUCCESS) return result;
  primaries[device].retained = false;
  return cuDevicePrimaryCtxReset(handle);
}

}  // namespace

CUresult start() { return cuInit(0); }

CUresult enter() {
  const CUresult result = start();
  if (result != CUDA_SUCCESS) return result;
  return has_context() ? CUDA_SUCCESS : use_primary(chosen_device);
}

cudaError_t record(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

}  // namespace emu_runtime

using namespace emu_runtime;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return started([&] {
    const CUresult result = cuDeviceGetCount(count);
    return result == CUDA_SUCCESS && *count == 0 ? CUDA_ERROR_NO_DEVICE : result;
  });
}

cudaError_t cudaSetDevice(int device) {
  return started([&] {
    const CUresult result = use_primary(device);
    if (result == CUDA_SUCCESS) chosen_device = device;
    return result;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return started([&] {
    if (has_context()) return cuCtxGetDevice(device);
    *device = chosen_device;
    return CUDA_SUCCESS;
  });
}

// Without cudaInitDeviceFlagsAreValid the flags mean nothing; with it, how the CPU waits, which is the driver's affair.
cudaError_t cudaInitDevice(int device, unsigned int, unsigned int) {
  int current;
  const cudaError_t before = cudaGetDevice(&current);
  if (before != cudaSuccess) return before;
  const cudaError_t result = cudaSetDevice(device);
  return result == cudaSuccess ? cudaSetDevice(current) : result;
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  return started(
      [&] { return cuDevicePrimaryCtxSetFlags(chosen_device, flags & cudaDeviceMask & ~cudaDeviceMapHost); });
}
cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
  return in_context([&] { return cuCtxGetFlags(flags); });
}

cudaError_t cudaDeviceSynchronize(void) {
  return in_context([] { return cuCtxSynchronize(); });
}

cudaError_t cudaDeviceReset(void) {
  int device;
  const cudaError_t result = cudaGetDevice(&device);
  return result != cudaSuccess ? result : record(reset(device));
}

cudaError_t cudaDeviceGetLimit(size_t* value, enum cudaLimit limit) {
  return in_context([&] { return cuCtxGetLimit(value, static_cast<CUlimit>(limit)); });
}
cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
  return in_context([&] { return cuCtxSetLimit(static_cast<CUlimit>(limit), value); });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return in_context([&] { return cuCtxGetStreamPriorityRange(least, greatest); });
}

cudaError_t cudaGetLastError(void) {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError(void) { return last_error; }

}  // extern "C"
