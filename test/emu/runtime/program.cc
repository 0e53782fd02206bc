// What nvcc puts into a program to make its kernels known: accepted, so that the program starts, and nothing more. A
// kernel of the program cannot run on a CPU: each launch fails, and the first one says so.
#include <cstdio>

#include "emu/runtime/runtime.h"

using namespace emu_runtime;

namespace {

cudaError_t refuse_launch() {
  static bool said = false;
  if (!said)
    std::fputs("software CUDA driver: kernels of the program cannot run here; the launch fails (not supported)\n",
               stderr);
  said = true;
  return record(cudaErrorNotSupported);
}

}  // namespace

// The host side of a kernel<<<>>> call pushes its shape, then pops it in the function that launches.
struct Shape {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
static thread_local Shape pushed_shape;

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, size_t, int, int) {}
void __cudaRegisterHostVar(void**, const char*, char*, size_t) {}
void __cudaRegisterUnifiedTable(void**, void*) {}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st* stream) {
  pushed_shape = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  *grid = pushed_shape.grid;
  *block = pushed_shape.block;
  *shared = pushed_shape.shared;
  *static_cast<cudaStream_t*>(stream) = pushed_shape.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t) { return refuse_launch(); }

cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t) { return refuse_launch(); }
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void*, void**) { return refuse_launch(); }
cudaError_t cudaLaunchCooperativeKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t) {
  return refuse_launch();
}
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes*, const void*) { return record(cudaErrorNotSupported); }
cudaError_t cudaFuncSetAttribute(const void*, enum cudaFuncAttribute, int) { return record(cudaErrorNotSupported); }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int*, const void*, int, size_t) {
  return record(cudaErrorNotSupported);
}
cudaError_t cudaGetSymbolAddress(void**, const void*) { return record(cudaErrorNotSupported); }
cudaError_t cudaGetSymbolSize(size_t*, const void*) { return record(cudaErrorNotSupported); }
cudaError_t cudaMemcpyToSymbol(const void*, const void*, size_t, size_t, enum cudaMemcpyKind) {
  return record(cudaErrorNotSupported);
}
cudaError_t cudaMemcpyFromSymbol(void*, const void*, size_t, size_t, enum cudaMemcpyKind) {
  return record(cudaErrorNotSupported);
}

}  // extern "C"
