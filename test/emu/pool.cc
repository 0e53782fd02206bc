// Memory pools: memory that is allocated and freed in the order of a stream. It belongs to no context.
//
// Freed memory is out of the program's hands at once, and given back when the stream comes to it.
#include "emu/pool.h"

#include <cstring>

#include "emu/capture.h"
#include "emu/context.h"
#include "emu/memory.h"
#include "emu/stream.h"

namespace emu {

namespace {

struct Pool {
  int device = 0;
  bool alive = true;
  bool is_default = false;
  cuuint64_t release_threshold = 0;
  uint64_t accessible = 0;

  CUmemoryPool handle() { return reinterpret_cast<CUmemoryPool>(this); }
};

Handles<Pool>& pools() {
  static auto* const pools = new Handles<Pool>;
  return *pools;
}

// The default pool and the one in use, of each device.
std::map<int, std::pair<Pool*, Pool*>>& pools_of_devices() {
  static auto* const all = new std::map<int, std::pair<Pool*, Pool*>>;
  return *all;
}

Pool* make_pool(int device) {
  auto pool = std::make_shared<Pool>();
  pool->device = device;
  pool->accessible = uint64_t(1) << device;
  return pools().add(std::move(pool));
}

std::pair<Pool*, Pool*>& pools_of(int device) {
  auto& [standard, current] = pools_of_devices()[device];
  if (standard == nullptr) {
    standard = current = make_pool(device);
    standard->is_default = true;
  }
  return pools_of_devices()[device];
}

Pool* pool_of(CUmemoryPool handle, const char* function, CUresult* result) {
  Pool* const pool = pools().find(handle);
  *result = CUDA_SUCCESS;
  if (pool != nullptr && pool->alive) return pool;
  *result = misuse(CUDA_ERROR_INVALID_VALUE, "%s: %p is no memory pool, or was destroyed", function, (void*)handle);
  return nullptr;
}

// `handle` nullptr: the pool in use on the stream's device.
CUresult allocate_in_order(CUdeviceptr* address, size_t bytes, CUmemoryPool handle, CUstream stream_handle,
                           const char* function) {
  return enter(function, [&](Lock&) {
    CUresult result;
    Stream* const stream = stream_of(stream_handle, function, &result);
    if (stream == nullptr) return result;
    if (stream->capture != nullptr) return asked_while_capturing(stream, function);
    Pool* const pool =
        handle == nullptr ? pools_of(stream->context->device).second : pool_of(handle, function, &result);
    if (pool == nullptr) return result;
    std::shared_ptr<Memory> memory;
    if ((result = allocate(Memory::Kind::pool, bytes, pool->device, nullptr, &memory)) != CUDA_SUCCESS) return result;
    memory->owner = pool;
    memory->accessible = pool->accessible;
    *address = memory->address;
    return submit(
        stream, [] {}, function);
  });
}

cuuint64_t used_bytes(const Pool* pool) {
  cuuint64_t used = 0;
  for (const auto& [address, memory] : all_memory())
    if (memory->kind == Memory::Kind::pool && memory->owner == pool) used += memory->bytes;
  return used;
}

}  // namespace

size_t living_pools() {
  size_t living = 0;
  for (const auto& [handle, pool] : pools().all()) living += pool->alive && !pool->is_default ? 1 : 0;
  return living;
}

}  // namespace emu

using namespace emu;

extern "C" CUresult emu_cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return enter("cuDeviceGetDefaultMemPool", [&](Lock&) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *pool = pools_of(device).first->handle();
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  return enter("cuDeviceGetMemPool", [&](Lock&) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *pool = pools_of(device).second->handle();
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle) {
  return enter("cuDeviceSetMemPool", [&](Lock&) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    CUresult result;
    Pool* const pool = pool_of(handle, "cuDeviceSetMemPool", &result);
    if (pool != nullptr) pools_of(device).second = pool;
    return result;
  });
}

extern "C" CUresult emu_cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  return enter("cuMemPoolCreate", [&](Lock&) {
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || !is_device(properties->location.id))
      return CUDA_ERROR_INVALID_VALUE;
    *pool = make_pool(properties->location.id)->handle();
    return CUDA_SUCCESS;
  });
}

// What was allocated from it lives on.
extern "C" CUresult emu_cuMemPoolDestroy(CUmemoryPool handle) {
  return enter("cuMemPoolDestroy", [&](Lock&) {
    CUresult result;
    Pool* const pool = pool_of(handle, "cuMemPoolDestroy", &result);
    if (pool == nullptr) return result;
    if (pool->is_default) return misuse(CUDA_ERROR_INVALID_VALUE, "cuMemPoolDestroy: of a default pool");
    if (pools_of(pool->device).second == pool) pools_of(pool->device).second = pools_of(pool->device).first;
    pool->alive = false;
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return enter("cuMemPoolSetAttribute", [&](Lock&) {
    CUresult result;
    Pool* const pool = pool_of(handle, "cuMemPoolSetAttribute", &result);
    if (pool != nullptr && attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
      memcpy(&pool->release_threshold, value, sizeof pool->release_threshold);
    return result;
  });
}

extern "C" CUresult emu_cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return enter("cuMemPoolGetAttribute", [&](Lock&) {
    CUresult result;
    Pool* const pool = pool_of(handle, "cuMemPoolGetAttribute", &result);
    if (pool == nullptr) return result;
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
      memcpy(value, &pool->release_threshold, sizeof pool->release_threshold);
      return CUDA_SUCCESS;
    }
    if (int(attribute) <= int(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)) {
      *static_cast<int*>(value) = 1;
      return CUDA_SUCCESS;
    }
    const cuuint64_t used = used_bytes(pool);
    memcpy(value, &used, sizeof used);
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuMemPoolTrimTo(CUmemoryPool handle, size_t) {
  return enter("cuMemPoolTrimTo", [&](Lock&) {
    CUresult result;
    pool_of(handle, "cuMemPoolTrimTo", &result);
    return result;
  });
}

extern "C" CUresult emu_cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* access, size_t count) {
  return enter("cuMemPoolSetAccess", [&](Lock&) {
    CUresult result;
    Pool* const pool = pool_of(handle, "cuMemPoolSetAccess", &result);
    if (pool == nullptr) return result;
    for (size_t i = 0; i < count; ++i) {
      if (!is_device(access[i].location.id)) return CUDA_ERROR_INVALID_DEVICE;
      const uint64_t bit = uint64_t(1) << access[i].location.id;
      pool->accessible =
          access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ? pool->accessible & ~bit : pool->accessible | bit;
    }
    for (const auto& [address, memory] : all_memory())
      if (memory->kind == Memory::Kind::pool && memory->owner == pool) memory->accessible = pool->accessible;
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return allocate_in_order(address, bytes, nullptr, stream, "cuMemAllocAsync");
}

extern "C" CUresult emu_cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                                CUstream stream) {
  return allocate_in_order(address, bytes, pool, stream, "cuMemAllocFromPoolAsync");
}

extern "C" CUresult emu_cuMemFreeAsync(CUdeviceptr address, CUstream stream_handle) {
  return enter("cuMemFreeAsync", [&](Lock&) {
    CUresult result;
    Stream* const stream = stream_of(stream_handle, "cuMemFreeAsync", &result);
    if (stream == nullptr) return result;
    if (stream->capture != nullptr) return asked_while_capturing(stream, "cuMemFreeAsync");
    const std::shared_ptr<Memory> memory = find_memory(address);
    if (memory == nullptr || memory->address != address || memory->on_host() || memory->kind == Memory::Kind::mapped)
      return misuse(CUDA_ERROR_INVALID_VALUE, "cuMemFreeAsync: %#llx is nothing that can be freed", address);
    result = submit(
        stream,
        [memory] {
          Lock lock(driver().mutex);
          give_back(*memory);
        },
        "cuMemFreeAsync");
    if (result == CUDA_SUCCESS) remove_memory(*memory);
    return result;
  });
}
