// Copies and memsets. The synchronous ones are ordered by the legacy default stream, as the driver's are.
#include "emu/runtime/runtime.h"

using namespace emu_runtime;

namespace {

// The direction that the program names holds: a host pointer given as device memory is an error, as on a GPU.
CUresult copy(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return CUDA_SUCCESS;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return cuMemcpyHtoD(device_address(dst), src, bytes);
    case cudaMemcpyDeviceToHost:
      return cuMemcpyDtoH(dst, device_address(src), bytes);
    case cudaMemcpyDeviceToDevice:
      return cuMemcpyDtoD(device_address(dst), device_address(src), bytes);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return cuMemcpy(device_address(dst), device_address(src), bytes);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult copy_async(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind, CUstream stream) {
  if (bytes == 0) return CUDA_SUCCESS;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return cuMemcpyHtoDAsync(device_address(dst), src, bytes, stream);
    case cudaMemcpyDeviceToHost:
      return cuMemcpyDtoHAsync(dst, device_address(src), bytes, stream);
    case cudaMemcpyDeviceToDevice:
      return cuMemcpyDtoDAsync(device_address(dst), device_address(src), bytes, stream);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return cuMemcpyAsync(device_address(dst), device_address(src), bytes, stream);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

bool reads_host(cudaMemcpyKind kind) { return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost; }
bool writes_host(cudaMemcpyKind kind) { return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost; }

CUDA_MEMCPY2D rows(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width, size_t height,
                   cudaMemcpyKind kind) {
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = kind == cudaMemcpyDefault ? CU_MEMORYTYPE_UNIFIED
                       : reads_host(kind)        ? CU_MEMORYTYPE_HOST
                                                 : CU_MEMORYTYPE_DEVICE;
  copy.dstMemoryType = kind == cudaMemcpyDefault ? CU_MEMORYTYPE_UNIFIED
                       : writes_host(kind)       ? CU_MEMORYTYPE_HOST
                                                 : CU_MEMORYTYPE_DEVICE;
  copy.srcHost = src;
  copy.srcDevice = device_address(src);
  copy.dstHost = dst;
  copy.dstDevice = device_address(dst);
  copy.srcPitch = src_pitch;
  copy.dstPitch = dst_pitch;
  copy.WidthInBytes = width;
  copy.Height = height;
  return copy;
}

CUresult context_of(int device, CUcontext* context) {
  const CUresult result = cuDevicePrimaryCtxRetain(context, device);
  return result == CUDA_SUCCESS ? cuDevicePrimaryCtxRelease(device) : result;
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpy(void* dst, const void* src, size_t bytes, enum cudaMemcpyKind kind) {
  return in_context([&] { return copy(dst, src, bytes, kind); });
}
cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
  return in_context([&] { return copy_async(dst, src, bytes, kind, stream); });
}

cudaError_t cudaMemcpy2D(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind) {
  return in_context([&] {
    const CUDA_MEMCPY2D all = rows(dst, dst_pitch, src, src_pitch, width, height, kind);
    return cuMemcpy2D(&all);
  });
}
cudaError_t cudaMemcpy2DAsync(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
  return in_context([&] {
    const CUDA_MEMCPY2D all = rows(dst, dst_pitch, src, src_pitch, width, height, kind);
    return cuMemcpy2DAsync(&all, stream);
  });
}

cudaError_t cudaMemcpyPeerAsync(void* dst, int dst_device, const void* src, int src_device, size_t bytes,
                                cudaStream_t stream) {
  return in_context([&] {
    CUcontext to, from;
    CUresult result = context_of(dst_device, &to);
    if (result == CUDA_SUCCESS) result = context_of(src_device, &from);
    if (result != CUDA_SUCCESS) return result;
    return cuMemcpyPeerAsync(device_address(dst), to, device_address(src), from, bytes, stream);
  });
}
cudaError_t cudaMemcpyPeer(void* dst, int dst_device, const void* src, int src_device, size_t bytes) {
  return in_context([&] {
    CUcontext to, from;
    CUresult result = context_of(dst_device, &to);
    if (result == CUDA_SUCCESS) result = context_of(src_device, &from);
    if (result != CUDA_SUCCESS) return result;
    return cuMemcpyPeer(device_address(dst), to, device_address(src), from, bytes);
  });
}

cudaError_t cudaMemset(void* dst, int value, size_t bytes) {
  return in_context([&] {
    return bytes == 0 ? CUDA_SUCCESS : cuMemsetD8(device_address(dst), static_cast<unsigned char>(value), bytes);
  });
}
cudaError_t cudaMemsetAsync(void* dst, int value, size_t bytes, cudaStream_t stream) {
  return in_context([&] {
    return bytes == 0 ? CUDA_SUCCESS
                      : cuMemsetD8Async(device_address(dst), static_cast<unsigned char>(value), bytes, stream);
  });
}

// All managed memory of the emulated GPU is where it is needed.
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, struct cudaMemLocation location, unsigned int flags,
                                 cudaStream_t stream) {
  return in_context([&] {
    return cuMemPrefetchAsync(device_address(pointer), bytes, reinterpret_cast<CUmemLocation&>(location), flags,
                              stream);
  });
}
cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location) {
  return in_context([&] {
    return cuMemAdvise(device_address(pointer), bytes, static_cast<CUmem_advise>(advice),
                       reinterpret_cast<CUmemLocation&>(location));
  });
}

}  // extern "C"
