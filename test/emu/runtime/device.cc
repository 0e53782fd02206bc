// What a device is: its properties, versions, and what its errors are called.
#include <cstring>

#include "emu/runtime/runtime.h"

using namespace emu_runtime;

namespace {

// 0 where the driver does not know the attribute.
int attribute(CUdevice_attribute which, CUdevice device) {
  int value = 0;
  return cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

CUresult fill_properties(cudaDeviceProp* p, int device) {
  CUdevice d;
  CUresult result = cuDeviceGet(&d, device);
  if (result != CUDA_SUCCESS) return result;
  *p = cudaDeviceProp();
  result = cuDeviceGetName(p->name, sizeof p->name, d);
  if (result == CUDA_SUCCESS) result = cuDeviceGetUuid(&p->uuid, d);
  if (result == CUDA_SUCCESS) result = cuDeviceTotalMem(&p->totalGlobalMem, d);
  p->major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d);
  p->minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d);
  p->multiProcessorCount = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, d);
  p->warpSize = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, d);
  p->maxThreadsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, d);
  p->maxThreadsPerMultiProcessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, d);
  p->maxThreadsDim[0] = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, d);
  p->maxThreadsDim[1] = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, d);
  p->maxThreadsDim[2] = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, d);
  p->maxGridSize[0] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, d);
  p->maxGridSize[1] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, d);
  p->maxGridSize[2] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, d);
  p->sharedMemPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, d);
  p->regsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, d);
  p->l2CacheSize = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, d);
  p->memoryBusWidth = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, d);
  p->memPitch = attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH, d);
  p->pciDomainID = attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, d);
  p->pciBusID = attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, d);
  p->pciDeviceID = attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, d);
  p->asyncEngineCount = attribute(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, d);
  p->concurrentKernels = attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, d);
  p->canMapHostMemory = attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, d);
  p->unifiedAddressing = attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, d);
  p->managedMemory = attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, d);
  p->concurrentManagedAccess = attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, d);
  p->pageableMemoryAccess = attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, d);
  p->hostRegisterSupported = attribute(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, d);
  p->memoryPoolsSupported = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, d);
  p->gpuDirectRDMASupported = attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, d);
  p->streamPrioritiesSupported = attribute(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, d);
  return result;
}

struct ErrorName {
  cudaError_t error;
  const char* name;
};
#define NAMED(error) \
  { error, #error }
// Those that the driver can return; the names are those of the runtime API.
const ErrorName kErrorNames[] = {
    NAMED(cudaSuccess),
    NAMED(cudaErrorInvalidValue),
    NAMED(cudaErrorMemoryAllocation),
    NAMED(cudaErrorInitializationError),
    NAMED(cudaErrorCudartUnloading),
    NAMED(cudaErrorStubLibrary),
    NAMED(cudaErrorNoDevice),
    NAMED(cudaErrorInvalidDevice),
    NAMED(cudaErrorInvalidKernelImage),
    NAMED(cudaErrorDeviceUninitialized),
    NAMED(cudaErrorMapBufferObjectFailed),
    NAMED(cudaErrorNoKernelImageForDevice),
    NAMED(cudaErrorPeerAccessUnsupported),
    NAMED(cudaErrorInvalidResourceHandle),
    NAMED(cudaErrorIllegalState),
    NAMED(cudaErrorSymbolNotFound),
    NAMED(cudaErrorNotReady),
    NAMED(cudaErrorIllegalAddress),
    NAMED(cudaErrorLaunchOutOfResources),
    NAMED(cudaErrorPeerAccessAlreadyEnabled),
    NAMED(cudaErrorPeerAccessNotEnabled),
    NAMED(cudaErrorContextIsDestroyed),
    NAMED(cudaErrorHostMemoryAlreadyRegistered),
    NAMED(cudaErrorHostMemoryNotRegistered),
    NAMED(cudaErrorMisalignedAddress),
    NAMED(cudaErrorLaunchFailure),
    NAMED(cudaErrorNotPermitted),
    NAMED(cudaErrorNotSupported),
    NAMED(cudaErrorStreamCaptureUnsupported),
    NAMED(cudaErrorStreamCaptureInvalidated),
    NAMED(cudaErrorStreamCaptureMerge),
    NAMED(cudaErrorStreamCaptureUnmatched),
    NAMED(cudaErrorStreamCaptureUnjoined),
    NAMED(cudaErrorStreamCaptureIsolation),
    NAMED(cudaErrorStreamCaptureImplicit),
    NAMED(cudaErrorCapturedEvent),
    NAMED(cudaErrorStreamCaptureWrongThread),
    NAMED(cudaErrorUnknown),
};
#undef NAMED

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* properties, int device) {
  return started([&] { return fill_properties(properties, device); });
}

// The two enums have the same numbers.
cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr which, int device) {
  return started([&] { return cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(which), device); });
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return started([&] { return cuDeviceGetPCIBusId(id, length, device); });
}
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) {
  return started([&] { return cuDeviceGetByPCIBusId(device, id); });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return started([&] { return cuDeviceCanAccessPeer(can, device, peer); });
}
cudaError_t cudaDeviceGetP2PAttribute(int* value, enum cudaDeviceP2PAttr which, int device, int peer) {
  return started(
      [&] { return cuDeviceGetP2PAttribute(value, static_cast<CUdevice_P2PAttribute>(which), device, peer); });
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  return in_context([&] {
    CUcontext context;
    const CUresult result = cuDevicePrimaryCtxRetain(&context, peer);  // that of a peer lives as long as the process
    return result == CUDA_SUCCESS ? cuCtxEnablePeerAccess(context, flags) : result;
  });
}
cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return in_context([&] {
    CUcontext context;
    CUresult result = cuDevicePrimaryCtxRetain(&context, peer);
    if (result != CUDA_SUCCESS) return result;
    result = cuCtxDisablePeerAccess(context);
    const CUresult released = cuDevicePrimaryCtxRelease(peer);
    return result == CUDA_SUCCESS ? released : result;
  });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return record(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return record(cuDriverGetVersion(version)); }

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int version,
                                             unsigned long long flags, enum cudaDriverEntryPointQueryResult* found) {
  return started([&] {
    CUdriverProcAddressQueryResult status;
    const CUresult result = cuGetProcAddress(symbol, function, static_cast<int>(version), flags, &status);
    if (found != nullptr) *found = static_cast<cudaDriverEntryPointQueryResult>(status);
    return found != nullptr && result == CUDA_ERROR_NOT_FOUND ? CUDA_SUCCESS : result;
  });
}
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult* found) {
  return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, found);
}

const char* cudaGetErrorName(cudaError_t error) {
  for (const ErrorName& known : kErrorNames)
    if (known.error == error) return known.name;
  return "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t error) {
  const char* text = nullptr;
  if (cuGetErrorString(static_cast<CUresult>(error), &text) != CUDA_SUCCESS || text == nullptr)
    return "unrecognized error code";
  return text;
}

}  // extern "C"
