// What the driver tells of an address.
#include <cstring>

#include "emu/context.h"
#include "emu/memory.h"
#include "emu/virtual.h"

namespace emu {

namespace {

struct Range {
  uintptr_t address;
  size_t bytes;
};

// Of the allocation; of mapped memory, of the whole reservation.
Range range_of(const Memory& memory) {
  Range range = {memory.address, memory.bytes};
  if (memory.kind == Memory::Kind::mapped) reservation_of(memory, &range.address, &range.bytes);
  return range;
}

template <typename T>
void put(void* data, T value) {
  memcpy(data, &value, sizeof value);
}

// Writes one attribute of known memory. False: it has none, or the attribute is unknown.
bool put_attribute(void* data, CUpointer_attribute attribute, const Memory& memory, uintptr_t address) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      put<CUcontext>(data, memory.context == nullptr ? nullptr : memory.context->handle());
      return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      put<unsigned>(data, memory.on_host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      put<CUdeviceptr>(data, address);
      return true;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!memory.on_host() && memory.kind != Memory::Kind::managed) return false;
      put<uintptr_t>(data, address);
      return true;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      put<int>(data, 0);
      return true;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      put<unsigned long long>(data, memory.id);
      return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      put<int>(data, memory.kind == Memory::Kind::managed);
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      put<int>(data, memory.device);
      return true;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      put<int>(data, memory.kind == Memory::Kind::device);
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      put<CUdeviceptr>(data, range_of(memory).address);
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      put<size_t>(data, range_of(memory).bytes);
      return true;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      put<int>(data, 1);
      return true;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      put<unsigned long long>(data, 0);
      return true;
    default:
      break;
  }
  if (int(attribute) == 17) {  // MEMPOOL_HANDLE, since 11.3
    put<const void*>(data, memory.kind == Memory::Kind::pool ? memory.owner : nullptr);
    return true;
  }
  return false;
}

size_t size_of(CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return 4;
    default:
      return 8;
  }
}

}  // namespace

}  // namespace emu

using namespace emu;

extern "C" CUresult emu_cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  return enter("cuPointerGetAttribute", [&](Lock&) {
    if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER && current_context() == nullptr)
      return CUDA_ERROR_INVALID_CONTEXT;
    const std::shared_ptr<Memory> memory = find_memory(address);
    if (memory == nullptr || !put_attribute(data, attribute, *memory, address)) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
  });
}

// Of an address that the driver does not know, all is zero, and that is no error; of a device ordinal, -2.
extern "C" CUresult emu_cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                               CUdeviceptr address) {
  return enter("cuPointerGetAttributes", [&](Lock&) {
    if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<Memory> memory = find_memory(address);
    for (unsigned i = 0; i < count; ++i) {
      if (memory != nullptr && put_attribute(data[i], attributes[i], *memory, address)) continue;
      memset(data[i], 0, size_of(attributes[i]));
      if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) put<int>(data[i], -2);
    }
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuPointerSetAttribute(const void*, CUpointer_attribute attribute, CUdeviceptr address) {
  return enter("cuPointerSetAttribute", [&](Lock&) {
    if (attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || find_memory(address) == nullptr)
      return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
  });
}

// Of mapped memory, of the one mapping.
extern "C" CUresult emu_cuMemGetAddressRange_v2(CUdeviceptr* start, size_t* bytes, CUdeviceptr address) {
  return enter("cuMemGetAddressRange", [&](Lock&) {
    const std::shared_ptr<Memory> memory = find_memory(address);
    if (memory == nullptr) return CUDA_ERROR_NOT_FOUND;
    if (start != nullptr) *start = memory->address;
    if (bytes != nullptr) *bytes = memory->bytes;
    return CUDA_SUCCESS;
  });
}

// What UCX asks of managed memory: where it was last prefetched to; nowhere.
extern "C" CUresult emu_cuMemRangeGetAttribute(void* data, size_t bytes, CUmem_range_attribute, CUdeviceptr address,
                                               size_t) {
  return enter("cuMemRangeGetAttribute", [&](Lock&) {
    const std::shared_ptr<Memory> memory = find_memory(address);
    if (memory == nullptr || memory->kind != Memory::Kind::managed || bytes != sizeof(int))
      return CUDA_ERROR_INVALID_VALUE;
    put<int>(data, CU_DEVICE_INVALID);
    return CUDA_SUCCESS;
  });
}
