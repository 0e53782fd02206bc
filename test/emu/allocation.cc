// Memory of the device, managed, pinned and registered memory: what the program asks for and gives back.
#include <sys/mman.h>

#include "emu/context.h"
#include "emu/counts.h"
#include "emu/memory.h"
#include "emu/stream.h"

namespace emu {

namespace {

CUresult allocate_for_program(Memory::Kind kind, CUdeviceptr* address, size_t bytes, const char* function) {
  return enter(function, [&](Lock&) {
    CUresult result;
    Context* const context = need_context(function, &result);
    if (context == nullptr) return result;
    if ((result = unsafe_while_capturing(function)) != CUDA_SUCCESS) return result;
    std::shared_ptr<Memory> memory;
    result = allocate(kind, bytes, context->device, context, &memory);
    if (result == CUDA_SUCCESS) *address = memory->address;
    return result;
  });
}

// Frees what lies at exactly this address. A driver waits for all work before.
template <typename Ours>
CUresult free_for_program(uintptr_t address, Ours&& ours, const char* function) {
  return enter(function, [&](Lock& lock) {
    CUresult result = unsafe_while_capturing(function);
    if (result != CUDA_SUCCESS) return result;
    if (address == 0) return CUDA_SUCCESS;
    const std::shared_ptr<Memory> memory = find_memory(address);
    if (memory == nullptr || memory->address != address || !ours(*memory))
      return misuse(CUDA_ERROR_INVALID_VALUE, "%s: %#zx is not what it frees, but %s", function, size_t(address),
                    is_of_driver(address) ? describe(address).c_str() : "memory that the driver does not know");
    Context* const context = memory->context == nullptr ? current_context() : memory->context;
    if (context != nullptr) wait_for_context(context, lock);
    free_memory(memory);
    return CUDA_SUCCESS;
  });
}

CUresult allocate_pinned(void** address, size_t bytes, unsigned flags, const char* function) {
  return enter(function, [&](Lock&) {
    CUresult result;
    Context* const context = need_context(function, &result);
    if (context == nullptr) return result;
    if ((result = unsafe_while_capturing(function)) != CUDA_SUCCESS) return result;
    if (bytes == 0 || (flags & ~7u) != 0) return CUDA_ERROR_INVALID_VALUE;
    void* const pages = mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    auto memory = std::make_shared<Memory>();
    memory->kind = Memory::Kind::pinned;
    memory->address = reinterpret_cast<uintptr_t>(pages);
    memory->bytes = bytes;
    memory->alias = static_cast<char*>(pages);
    memory->device = context->device;
    memory->context = context;
    memory->flags = flags;
    add_memory(memory);
    *address = pages;
    return CUDA_SUCCESS;
  });
}

bool overlaps_known(uintptr_t begin, uintptr_t end) {
  const auto& all = all_memory();
  auto next = all.lower_bound(begin);
  if (next != all.end() && next->first < end) return true;
  return find_memory(begin) != nullptr;
}

}  // namespace

}  // namespace emu

using namespace emu;

extern "C" CUresult emu_cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return allocate_for_program(Memory::Kind::device, address, bytes, "cuMemAlloc");
}

extern "C" CUresult emu_cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t rows, unsigned) {
  *pitch = (width + 511) / 512 * 512;
  return allocate_for_program(Memory::Kind::device, address, *pitch * rows, "cuMemAllocPitch");
}

extern "C" CUresult emu_cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned) {
  return allocate_for_program(Memory::Kind::managed, address, bytes, "cuMemAllocManaged");
}

extern "C" CUresult emu_cuMemFree_v2(CUdeviceptr address) {
  const auto ours = [](const Memory& memory) { return memory.on_arena() && memory.kind != Memory::Kind::mapped; };
  return free_for_program(address, ours, "cuMemFree");
}

extern "C" CUresult emu_cuMemHostAlloc(void** address, size_t bytes, unsigned flags) {
  return allocate_pinned(address, bytes, flags, "cuMemHostAlloc");
}

extern "C" CUresult emu_cuMemAllocHost_v2(void** address, size_t bytes) {
  return allocate_pinned(address, bytes, CU_MEMHOSTALLOC_DEVICEMAP, "cuMemAllocHost");
}

extern "C" CUresult emu_cuMemFreeHost(void* address) {
  const auto ours = [](const Memory& memory) { return memory.kind == Memory::Kind::pinned; };
  return free_for_program(reinterpret_cast<uintptr_t>(address), ours, "cuMemFreeHost");
}

extern "C" CUresult emu_cuMemHostRegister_v2(void* address, size_t bytes, unsigned flags) {
  return enter("cuMemHostRegister", [&](Lock&) {
    CUresult result;
    Context* const context = need_context("cuMemHostRegister", &result);
    if (context == nullptr) return result;
    if ((result = unsafe_while_capturing("cuMemHostRegister")) != CUDA_SUCCESS) return result;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(address);
    if (begin == 0 || bytes == 0 || (flags & ~15u) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (is_of_driver(begin) || overlaps_known(begin, begin + bytes)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    auto memory = std::make_shared<Memory>();
    memory->kind = Memory::Kind::registered;
    memory->address = begin;
    memory->bytes = bytes;
    memory->alias = static_cast<char*>(address);
    memory->device = context->device;
    memory->context = context;
    memory->flags = flags;
    add_memory(std::move(memory));
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuMemHostUnregister(void* address) {
  return enter("cuMemHostUnregister", [&](Lock& lock) {
    CUresult result = unsafe_while_capturing("cuMemHostUnregister");
    if (result != CUDA_SUCCESS) return result;
    const std::shared_ptr<Memory> memory = find_memory(reinterpret_cast<uintptr_t>(address));
    if (memory == nullptr || memory->kind != Memory::Kind::registered || memory->alias != address)
      return misuse(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "cuMemHostUnregister: %p is not registered", address);
    wait_for_context(memory->context, lock);
    free_memory(memory);
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* address, unsigned flags) {
  return enter("cuMemHostGetDevicePointer", [&](Lock&) {
    const std::shared_ptr<Memory> memory = find_memory(reinterpret_cast<uintptr_t>(address));
    if (flags != 0 || memory == nullptr || !memory->on_host()) return CUDA_ERROR_INVALID_VALUE;
    *device = reinterpret_cast<uintptr_t>(address);
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuMemHostGetFlags(unsigned* flags, void* address) {
  return enter("cuMemHostGetFlags", [&](Lock&) {
    const std::shared_ptr<Memory> memory = find_memory(reinterpret_cast<uintptr_t>(address));
    if (memory == nullptr || memory->kind != Memory::Kind::pinned) return CUDA_ERROR_INVALID_VALUE;
    *flags = memory->flags;
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuMemGetInfo_v2(size_t* free, size_t* total) {
  return enter("cuMemGetInfo", [&](Lock&) {
    CUresult result;
    const Context* const context = need_context("cuMemGetInfo", &result);
    if (context == nullptr) return result;
    const size_t all = driver().settings.memory;
    if (total != nullptr) *total = all;
    if (free != nullptr) *free = all - driver().devices[context->device].used;
    return CUDA_SUCCESS;
  });
}
