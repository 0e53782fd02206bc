#include "emu/virtual.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "emu/context.h"
#include "emu/memory.h"
#include "emu/stream.h"

namespace emu {

namespace {

constexpr size_t kGranularity = size_t(2) << 20;  // of the GPUs there are

struct Reservation {
  uintptr_t address;
  size_t bytes;
  char* alias;  // the same range, where the emulator reaches it
};

struct Chunk {
  int device = 0;
  size_t bytes = 0, offset = 0;
  int handles = 1;  // not released yet
  int mappings = 0;
  bool alive() const { return handles + mappings > 0; }
};

std::map<uintptr_t, std::unique_ptr<Reservation>>& reservations() {
  static auto* const reservations = new std::map<uintptr_t, std::unique_ptr<Reservation>>;
  return *reservations;
}

Handles<Chunk>& chunks() {
  static auto* const chunks = new Handles<Chunk>;
  return *chunks;
}

// Which chunk each mapping shows.
std::map<uintptr_t, Chunk*>& mapped_chunks() {
  static auto* const mapped = new std::map<uintptr_t, Chunk*>;
  return *mapped;
}

Reservation* reservation_at(uintptr_t address, size_t bytes) {
  auto found = reservations().upper_bound(address);
  if (found == reservations().begin()) return nullptr;
  Reservation* const one = (--found)->second.get();
  return address + bytes <= one->address + one->bytes ? one : nullptr;
}

Chunk* chunk_of(CUmemGenericAllocationHandle handle, const char* function, CUresult* result) {
  Chunk* const chunk = chunks().find(reinterpret_cast<const void*>(uintptr_t(handle)));
  *result = CUDA_SUCCESS;
  if (chunk != nullptr && chunk->alive()) return chunk;
  *result = misuse(CUDA_ERROR_INVALID_VALUE, "%s: %#llx is no memory handle, or was released", function,
                   (unsigned long long)handle);
  return nullptr;
}

void end_if_unused(Chunk* chunk) {
  if (!chunk->alive()) give_pages(chunk->device, chunk->offset, chunk->bytes);
}

// Nothing but addresses, with the alignment of the largest pages.
char* reserve(size_t bytes, size_t alignment) {
  void* const all = mmap(nullptr, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(all);
  char* const aligned = begin + (alignment - reinterpret_cast<uintptr_t>(begin) % alignment) % alignment;
  if (aligned > begin) munmap(begin, size_t(aligned - begin));
  const size_t rest = size_t(begin + bytes + alignment - (aligned + bytes));
  if (rest > 0) munmap(aligned + bytes, rest);
  return aligned;
}

// The mappings that lie in a range, which must cover it; empty: they do not.
std::vector<std::shared_ptr<Memory>> mappings_in(uintptr_t address, size_t bytes) {
  std::vector<std::shared_ptr<Memory>> found;
  for (uintptr_t at = address; at < address + bytes;) {
    const std::shared_ptr<Memory> memory = find_memory(at);
    if (memory == nullptr || memory->kind != Memory::Kind::mapped || memory->address != at ||
        memory->address + memory->bytes > address + bytes)
      return {};
    found.push_back(memory);
    at += memory->bytes;
  }
  return found;
}

bool is_whole(size_t bytes) { return bytes != 0 && bytes % kGranularity == 0; }

}  // namespace

void reservation_of(const Memory& memory, uintptr_t* address, size_t* bytes) {
  const auto* const reservation = static_cast<const Reservation*>(memory.owner);
  *address = reservation->address;
  *bytes = reservation->bytes;
}

size_t living_reservations() { return reservations().size(); }

size_t living_chunks() {
  size_t living = 0;
  for (const auto& [handle, chunk] : chunks().all()) living += chunk->handles > 0 && chunk->mappings == 0 ? 1 : 0;
  return living;
}

}  // namespace emu

using namespace emu;

extern "C" CUresult emu_cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp*,
                                                      CUmemAllocationGranularity_flags) {
  return enter("cuMemGetAllocationGranularity", [&](Lock&) {
    *bytes = kGranularity;
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr,
                                            unsigned long long flags) {
  return enter("cuMemAddressReserve", [&](Lock&) {
    if (!is_whole(bytes) || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (alignment < kGranularity) alignment = kGranularity;
    char* const visible = reserve(bytes, alignment);
    char* const alias = reserve(bytes, kPage);
    if (visible == nullptr || alias == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(visible);
    reservations()[begin] = std::make_unique<Reservation>(Reservation{begin, bytes, alias});
    add_range(begin, bytes);
    *address = begin;
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  return enter("cuMemAddressFree", [&](Lock&) {
    const auto found = reservations().find(address);
    if (found == reservations().end() || found->second->bytes != bytes)
      return misuse(CUDA_ERROR_INVALID_VALUE, "cuMemAddressFree: %zu bytes at %#llx were not reserved", bytes, address);
    const auto next = all_memory().lower_bound(address);
    if (next != all_memory().end() && next->first < address + bytes)
      return misuse(CUDA_ERROR_INVALID_VALUE, "cuMemAddressFree: something is still mapped there");
    munmap(reinterpret_cast<void*>(address), bytes);
    munmap(found->second->alias, bytes);
    remove_range(address);
    reservations().erase(found);
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                                    const CUmemAllocationProp* properties, unsigned long long flags) {
  return enter("cuMemCreate", [&](Lock&) {
    const int device = properties->location.id;
    if (!is_whole(bytes) || flags != 0 || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
      return CUDA_ERROR_INVALID_VALUE;
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    auto chunk = std::make_shared<Chunk>();
    chunk->device = device;
    chunk->bytes = bytes;
    if (!take_pages(device, bytes, &chunk->offset)) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = reinterpret_cast<uintptr_t>(chunks().add(std::move(chunk)));
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuMemRelease(CUmemGenericAllocationHandle handle) {
  return enter("cuMemRelease", [&](Lock&) {
    CUresult result;
    Chunk* const chunk = chunk_of(handle, "cuMemRelease", &result);
    if (chunk == nullptr) return result;
    if (chunk->handles == 0) return misuse(CUDA_ERROR_INVALID_VALUE, "cuMemRelease: it was released already");
    --chunk->handles;
    end_if_unused(chunk);
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                                 unsigned long long flags) {
  return enter("cuMemMap", [&](Lock&) {
    CUresult result;
    Chunk* const chunk = chunk_of(handle, "cuMemMap", &result);
    if (chunk == nullptr) return result;
    const Reservation* const reservation = reservation_at(address, bytes);
    if (reservation == nullptr || address % kGranularity != 0 || offset != 0 || flags != 0 || bytes != chunk->bytes)
      return misuse(CUDA_ERROR_INVALID_VALUE, "cuMemMap: %zu bytes of a chunk of %zu at %#llx", bytes, chunk->bytes,
                    address);
    const auto next = all_memory().lower_bound(address);
    if (find_memory(address) != nullptr || (next != all_memory().end() && next->first < address + bytes))
      return misuse(CUDA_ERROR_INVALID_VALUE, "cuMemMap: something is mapped at %#llx", address);
    auto memory = std::make_shared<Memory>();
    memory->kind = Memory::Kind::mapped;
    memory->address = address;
    memory->bytes = bytes;
    memory->alias = reservation->alias + (address - reservation->address);
    memory->device = chunk->device;
    memory->owner = reservation;
    memory->offset = chunk->offset;
    memory->accessible = 0;
    const int fd = arena_of(chunk->device).fd();
    const int protection = driver().settings.reachable ? PROT_READ | PROT_WRITE : PROT_NONE;
    void* const visible = reinterpret_cast<void*>(address);
    if (mmap(visible, bytes, protection, MAP_SHARED | MAP_FIXED, fd, off_t(chunk->offset)) == MAP_FAILED ||
        mmap(memory->alias, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, off_t(chunk->offset)) ==
            MAP_FAILED)
      fail("cuMemMap: %s", strerror(errno));
    ++chunk->mappings;
    mapped_chunks()[address] = chunk;
    add_memory(std::move(memory));
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuMemUnmap(CUdeviceptr address, size_t bytes) {
  return enter("cuMemUnmap", [&](Lock& lock) {
    const auto mappings = mappings_in(address, bytes);
    if (mappings.empty())
      return misuse(CUDA_ERROR_INVALID_VALUE, "cuMemUnmap: %zu bytes at %#llx are not whole mappings", bytes, address);
    if (current_context() != nullptr) wait_for_context(current_context(), lock);
    for (const auto& memory : mappings) {
      free_memory(memory);
      for (void* const view : {reinterpret_cast<void*>(memory->address), static_cast<void*>(memory->alias)})
        mmap(view, memory->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
      Chunk* const chunk = mapped_chunks().at(memory->address);
      mapped_chunks().erase(memory->address);
      --chunk->mappings;
      end_if_unused(chunk);
    }
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access, size_t count) {
  return enter("cuMemSetAccess", [&](Lock&) {
    const auto mappings = mappings_in(address, bytes);
    if (mappings.empty())
      return misuse(CUDA_ERROR_INVALID_VALUE, "cuMemSetAccess: %zu bytes at %#llx are not whole mappings", bytes,
                    address);
    for (size_t i = 0; i < count; ++i) {
      if (!is_device(access[i].location.id)) return CUDA_ERROR_INVALID_DEVICE;
      const uint64_t bit = uint64_t(1) << access[i].location.id;
      for (const auto& memory : mappings)
        memory->accessible =
            access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ? memory->accessible & ~bit : memory->accessible | bit;
    }
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  return enter("cuMemGetAccess", [&](Lock&) {
    const std::shared_ptr<Memory> memory = find_memory(address);
    if (memory == nullptr || memory->kind != Memory::Kind::mapped) return CUDA_ERROR_INVALID_VALUE;
    const bool may = (memory->accessible >> location->id & 1) != 0;
    *flags = may ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
  });
}

// Asked of any address, to find out whether it is mapped memory.
extern "C" CUresult emu_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  return enter("cuMemRetainAllocationHandle", [&](Lock&) {
    const std::shared_ptr<Memory> memory = find_memory(reinterpret_cast<uintptr_t>(address));
    if (memory == nullptr || memory->kind != Memory::Kind::mapped) return CUDA_ERROR_INVALID_VALUE;
    Chunk* const chunk = mapped_chunks().at(memory->address);
    ++chunk->handles;
    *handle = reinterpret_cast<uintptr_t>(chunk);
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                               CUmemGenericAllocationHandle handle) {
  return enter("cuMemGetAllocationPropertiesFromHandle", [&](Lock&) {
    CUresult result;
    const Chunk* const chunk = chunk_of(handle, "cuMemGetAllocationPropertiesFromHandle", &result);
    if (chunk == nullptr) return result;
    *properties = {};
    properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties->location.id = chunk->device;
    return CUDA_SUCCESS;
  });
}
