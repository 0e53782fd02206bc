#include "device/contexts.h"

#include "base/log.h"

namespace gpurdma {

Contexts::~Contexts() {
  if (primaries_.empty()) return;
  for (const Primary& primary : primaries_) {
    const CUresult result = driver().primary_release(primary.device);
    if (result != CUDA_SUCCESS && !gone(result))
      GPURDMA_LOG(warn, "GPU %d: its primary context could not be given back: %s", int(primary.device),
                  driver().text(result));
  }
}

MemoryInfo Contexts::memory(const void* address) {
  MemoryInfo memory;
  const Driver* driver = watch_.driver();
  if (driver && address) memory.gpu = look(*driver, address, &memory);
  return memory;
}

// All that is asked for comes as zeros for memory that the driver does not know. Asking before the driver was started
// is an error, which tells that there is no memory of its own yet.
GpuId Contexts::look(const Driver& driver, const void* address, MemoryInfo* memory) {
  CUcontext named = nullptr;
  unsigned type = 0, managed = 0;
  int ordinal = -1;
  unsigned long long buffer = 0;
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                      CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                      CU_POINTER_ATTRIBUTE_BUFFER_ID};
  void* values[] = {&type, &managed, &named, &ordinal, &buffer};
  const CUresult result = driver.pointer_get_attributes(memory ? 5 : 4, attributes, values, CUdeviceptr(address));
  if (result != CUDA_SUCCESS) {
    if (result == CUDA_ERROR_NOT_INITIALIZED || result == CUDA_ERROR_INVALID_VALUE || gone(result)) return kHost;
    GPURDMA_LOG(error, "the CUDA driver does not say what memory %p is: %s", address, driver.text(result));
    if (memory) memory->kind = MemoryInfo::Kind::unknown;
    return kUnknown;
  }
  const bool device = type == CU_MEMORYTYPE_DEVICE || managed != 0;
  if (memory) {
    memory->kind = device                       ? MemoryInfo::Kind::device
                   : type == CU_MEMORYTYPE_HOST ? MemoryInfo::Kind::pinned
                                                : MemoryInfo::Kind::pageable;
    memory->buffer = buffer;
  }
  if (!device) return kHost;
  for (const Known& known : known_) {
    if (known.named == named && known.ordinal == ordinal) return known.gpu;
  }
  return identify(driver, named, ordinal);
}

GpuId Contexts::identify(const Driver& driver, CUcontext named, int ordinal) {
  CUdevice device = ordinal;
  (void)driver.device_get(&device, ordinal);
  const CUcontext active = primary(driver, device, false);
  const CUcontext handle = named ? named : active ? active : stand_in(driver, device);
  size_t gpu = 0;
  while (gpu < contexts_.size() && contexts_[gpu].handle != handle) ++gpu;
  if (gpu == contexts_.size()) contexts_.push_back({handle, device, ordinal});
  known_.push_back({named, ordinal, GpuId(gpu)});
  return GpuId(gpu);
}

// The primary context of a device, retained for as long as this lives; nullptr: it is not active, or cannot be had.
CUcontext Contexts::primary(const Driver& driver, CUdevice device, bool activate) {
  for (const Primary& primary : primaries_) {
    if (primary.device == device) return primary.handle;
  }
  unsigned flags;
  int active = 0;
  if (!activate && (driver.primary_get_state(device, &flags, &active) != CUDA_SUCCESS || !active)) return nullptr;
  CUcontext handle = nullptr;
  const CUresult result = driver.primary_retain(&handle, device);
  if (result != CUDA_SUCCESS) {
    GPURDMA_LOG(error, "GPU %d: its primary context cannot be used: %s", int(device), driver.text(result));
    return nullptr;
  }
  primaries_.push_back({handle, device});
  return handle;
}

// For memory without a context on a device whose primary context is not in use: the application works in another one
// there, which is the calling thread's current one or one that we know; failing these, the primary one all the same.
CUcontext Contexts::stand_in(const Driver& driver, CUdevice device) {
  CUcontext current = nullptr;
  CUdevice its_device;
  if (driver.ctx_get_current(&current) == CUDA_SUCCESS && current &&
      driver.ctx_get_device(&its_device) == CUDA_SUCCESS && its_device == device)
    return current;
  for (const Context& context : contexts_) {
    if (context.device == device) return context.handle;
  }
  return primary(driver, device, true);
}

}  // namespace gpurdma
