// libcudart.so.13 for the software driver: the part of the CUDA runtime API that programs in C use to hold data on a
// GPU, on nothing but the driver API. NVIDIA's own runtime does not start on this driver.
//
// As there, a thread has a current device (0 until it chooses one); its primary context is retained at the first call
// that needs it and kept until cudaDeviceReset. A context that the program made current through the driver API is used
// as it is. CUresult and cudaError_t have the same numbers for the same faults.
#pragma once
#include <cuda.h>
#include <cuda_runtime_api.h>

namespace emu_runtime {

// Sees to it that the calling thread has a context.
CUresult enter();

// Remembers a failure for cudaGetLastError, of this thread.
cudaError_t record(cudaError_t error);
inline cudaError_t record(CUresult result) { return record(static_cast<cudaError_t>(result)); }

// Runs a call of the driver API in the thread's context.
template <typename Call>
cudaError_t in_context(Call call) {
  const CUresult entered = enter();
  return record(entered == CUDA_SUCCESS ? call() : entered);
}

// Runs a call that needs the driver, but no context.
CUresult start();
template <typename Call>
cudaError_t started(Call call) {
  const CUresult result = start();
  return record(result == CUDA_SUCCESS ? call() : result);
}

inline CUdeviceptr device_address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

}  // namespace emu_runtime
