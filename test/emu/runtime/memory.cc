// Memory of all kinds, and what a pointer points to.
#include "emu/runtime/runtime.h"

using namespace emu_runtime;

namespace {

CUresult allocate(void** pointer, size_t bytes, CUresult (*from_driver)(CUdeviceptr*, size_t)) {
  if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pointer = nullptr;
  if (bytes == 0) return CUDA_SUCCESS;  // as the runtime, unlike the driver
  CUdeviceptr address = 0;
  const CUresult result = from_driver(&address, bytes);
  if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
  return result;
}

CUresult describe(cudaPointerAttributes* attributes, const void* pointer) {
  CUmemorytype type = static_cast<CUmemorytype>(0);
  int ordinal = cudaInvalidDeviceId;
  unsigned managed = 0;
  CUdeviceptr device_pointer = 0;
  void* host_pointer = nullptr;
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                 CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                 CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* values[] = {&type, &ordinal, &managed, &device_pointer, &host_pointer};
  const CUresult result = cuPointerGetAttributes(5, names, values, device_address(pointer));
  if (result != CUDA_SUCCESS) return result;
  *attributes = cudaPointerAttributes();
  if (type == 0) {  // memory that CUDA does not know
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = cudaInvalidDeviceId;
    attributes->hostPointer = const_cast<void*>(pointer);
    return CUDA_SUCCESS;
  }
  attributes->type = managed                        ? cudaMemoryTypeManaged
                     : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                                                    : cudaMemoryTypeHost;
  attributes->device = ordinal;
  attributes->devicePointer = reinterpret_cast<void*>(device_pointer);
  attributes->hostPointer = host_pointer;
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return in_context([&] { return allocate(pointer, bytes, cuMemAlloc); });
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return in_context([&] {
    CUdeviceptr address = 0;
    const CUresult result = cuMemAllocPitch(&address, pitch, width, height, 16);
    if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
    return result;
  });
}

// cudaFree(0) is what programs call to start CUDA.
cudaError_t cudaFree(void* pointer) {
  return in_context([&] { return pointer == nullptr ? CUDA_SUCCESS : cuMemFree(device_address(pointer)); });
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned int flags) {
  return in_context([&] {
    CUdeviceptr address = 0;
    const CUresult result = cuMemAllocManaged(&address, bytes, flags);
    if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
    return result;
  });
}

// The flags of the two APIs have the same numbers. Under unified addressing all of it is portable and mapped.
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  return in_context([&] {
    *pointer = nullptr;
    if (bytes == 0) return CUDA_SUCCESS;
    return cuMemHostAlloc(pointer, bytes, flags | CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  });
}
cudaError_t cudaMallocHost(void** pointer, size_t bytes) { return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault); }
cudaError_t cudaFreeHost(void* pointer) {
  return in_context([&] { return pointer == nullptr ? CUDA_SUCCESS : cuMemFreeHost(pointer); });
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  return in_context([&] {
    return cuMemHostRegister(pointer, bytes, flags | CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  });
}
cudaError_t cudaHostUnregister(void* pointer) {
  return in_context([&] { return cuMemHostUnregister(pointer); });
}
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned int flags) {
  return in_context([&] {
    CUdeviceptr address = 0;
    const CUresult result = cuMemHostGetDevicePointer(&address, host, flags);
    if (result == CUDA_SUCCESS) *device = reinterpret_cast<void*>(address);
    return result;
  });
}
cudaError_t cudaHostGetFlags(unsigned int* flags, void* host) {
  return in_context([&] { return cuMemHostGetFlags(flags, host); });
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  return in_context([&] { return cuMemGetInfo(free_bytes, total); });
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return record(cudaErrorInvalidValue);
  return started([&] { return describe(attributes, pointer); });
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  return in_context([&] {
    CUdeviceptr address = 0;
    const CUresult result = cuMemAllocAsync(&address, bytes, stream);
    if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
    return result;
  });
}
cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  return in_context([&] {
    CUdeviceptr address = 0;
    const CUresult result = cuMemAllocFromPoolAsync(&address, bytes, pool, stream);
    if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
    return result;
  });
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return in_context([&] { return cuMemFreeAsync(device_address(pointer), stream); });
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return in_context([&] { return cuDeviceGetDefaultMemPool(pool, device); });
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return in_context([&] { return cuDeviceGetMemPool(pool, device); });
}
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return in_context([&] { return cuDeviceSetMemPool(device, pool); });
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  return in_context([&] { return cuMemPoolTrimTo(pool, keep); });
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr which, void* value) {
  return in_context([&] { return cuMemPoolSetAttribute(pool, static_cast<CUmemPool_attribute>(which), value); });
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr which, void* value) {
  return in_context([&] { return cuMemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(which), value); });
}

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle) &&
                  sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle),
              "a handle of the one API is a handle of the other");
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  return in_context(
      [&] { return cuIpcGetMemHandle(reinterpret_cast<CUipcMemHandle*>(handle), device_address(pointer)); });
}
cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned int flags) {
  return in_context([&] {
    CUdeviceptr address = 0;
    const CUresult result = cuIpcOpenMemHandle(&address, reinterpret_cast<CUipcMemHandle&>(handle), flags);
    if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
    return result;
  });
}
cudaError_t cudaIpcCloseMemHandle(void* pointer) {
  return in_context([&] { return cuIpcCloseMemHandle(device_address(pointer)); });
}

}  // extern "C"
