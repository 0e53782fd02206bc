#include "emu/memory.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstring>

#include "emu/context.h"

namespace emu {

namespace {

struct Table {
  std::map<uintptr_t, std::shared_ptr<Memory>> memory;
  std::map<uintptr_t, size_t> freed;   // what once was there: bytes
  std::map<uintptr_t, size_t> ranges;  // reserved: bytes
  std::map<int, std::unique_ptr<Arena>> arenas;
};

Table& table() {
  static Table* const table = new Table;
  return *table;
}

// The entry of a map by start address whose range holds `address`, or end().
template <typename Map, typename Bytes>
auto holder(Map& map, uintptr_t address, Bytes&& bytes) {
  auto entry = map.upper_bound(address);
  if (entry == map.begin()) return map.end();
  --entry;
  return address - entry->first < bytes(entry->second) ? entry : map.end();
}

bool was_freed(uintptr_t address) {
  return holder(table().freed, address, [](size_t bytes) { return bytes; }) != table().freed.end();
}

const char* name_of(Memory::Kind kind) {
  switch (kind) {
    case Memory::Kind::device:
      return "device memory";
    case Memory::Kind::managed:
      return "managed memory";
    case Memory::Kind::pinned:
      return "pinned memory";
    case Memory::Kind::registered:
      return "registered host memory";
    case Memory::Kind::pool:
      return "device memory of a pool";
    case Memory::Kind::mapped:
      return "mapped device memory";
    case Memory::Kind::imported:
      return "device memory of another process";
  }
  return "";
}

}  // namespace

const std::map<uintptr_t, std::shared_ptr<Memory>>& all_memory() { return table().memory; }

std::shared_ptr<Memory> find_memory(uintptr_t address) {
  auto& all = table().memory;
  const auto found = holder(all, address, [](const auto& memory) { return memory->bytes; });
  return found == all.end() ? nullptr : found->second;
}

Place place_of(uintptr_t address, size_t bytes, const char* function, CUresult* result) {
  *result = CUDA_SUCCESS;
  Place place;
  place.memory = find_memory(address);
  if (place.memory == nullptr) {
    if (is_of_driver(address))
      *result = misuse(CUDA_ERROR_INVALID_VALUE, "%s: address %#zx is %s", function, size_t(address),
                       describe(address).c_str());
    place.data = reinterpret_cast<char*>(address);
    return place;
  }
  place.data = place.memory->alias + (address - place.memory->address);
  if (place.memory->accessible == 0)
    *result =
        misuse(CUDA_ERROR_INVALID_VALUE, "%s: nobody was given access to %s", function, describe(address).c_str());
  // Chunks of one reservation follow each other, also where the emulator reaches them.
  const Memory* last = place.memory.get();
  const uintptr_t end = address + bytes;
  while (end > last->address + last->bytes) {
    const std::shared_ptr<Memory> next = find_memory(last->address + last->bytes);
    if (next == nullptr || next->kind != Memory::Kind::mapped || next->owner != last->owner) {
      *result = misuse(CUDA_ERROR_INVALID_VALUE, "%s: %zu bytes at %#zx end %zu bytes behind the end of %s", function,
                       bytes, size_t(address), size_t(end - last->address - last->bytes), describe(address).c_str());
      return place;
    }
    last = next.get();
  }
  return place;
}

// What was freed in [begin, end) is not told any more: something else is there now.
static void forget_freed(uintptr_t begin, uintptr_t end) {
  auto& freed = table().freed;
  for (auto old = freed.begin(); old != freed.end();)
    old = old->first < end && begin < old->first + old->second ? freed.erase(old) : std::next(old);
}

void add_memory(std::shared_ptr<Memory> memory) {
  memory->id = driver().next_id();
  forget_freed(memory->address, memory->address + memory->bytes);
  table().memory[memory->address] = std::move(memory);
}

// The addresses of imported memory go back to the system, which may give them to the program.
void remove_memory(const Memory& memory) {
  if (!memory.on_host() && memory.kind != Memory::Kind::imported) table().freed[memory.address] = memory.bytes;
  table().memory.erase(memory.address);
}

Arena& arena_of(int device) {
  std::unique_ptr<Arena>& arena = table().arenas[device];
  if (arena == nullptr) arena = std::make_unique<Arena>(driver().settings.memory, driver().settings.reachable);
  return *arena;
}

bool take_pages(int device, size_t bytes, size_t* offset) {
  Device& state = driver().devices[device];
  bytes = whole_pages(bytes);
  if (bytes > driver().settings.memory - state.used || !arena_of(device).take(bytes, offset)) return false;
  state.used += bytes;
  return true;
}

void give_pages(int device, size_t offset, size_t bytes) {
  driver().devices[device].used -= whole_pages(bytes);
  arena_of(device).give(offset, whole_pages(bytes));
}

CUresult allocate(Memory::Kind kind, size_t bytes, int device, Context* context, std::shared_ptr<Memory>* memory) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  size_t offset = 0;
  if (!take_pages(device, bytes, &offset)) return CUDA_ERROR_OUT_OF_MEMORY;
  const Arena& arena = arena_of(device);
  *memory = std::make_shared<Memory>();
  (*memory)->kind = kind;
  (*memory)->address = reinterpret_cast<uintptr_t>(arena.visible(offset));
  (*memory)->bytes = bytes;
  (*memory)->alias = arena.alias(offset);
  (*memory)->device = device;
  (*memory)->context = context;
  (*memory)->offset = offset;
  if (kind == Memory::Kind::managed) mprotect(arena.visible(offset), whole_pages(bytes), PROT_READ | PROT_WRITE);
  constexpr size_t kMost = 1 << 16;  // a real GPU's memory holds what was there before
  memset(arena.alias(offset), 0xa7, bytes < kMost ? bytes : kMost);
  add_memory(*memory);
  return CUDA_SUCCESS;
}

void free_memory(const std::shared_ptr<Memory>& memory) {
  remove_memory(*memory);
  give_back(*memory);
}

void give_back(const Memory& memory) {
  const size_t bytes = whole_pages(memory.bytes);
  switch (memory.kind) {
    case Memory::Kind::managed:
      if (!driver().settings.reachable) mprotect(reinterpret_cast<void*>(memory.address), bytes, PROT_NONE);
      [[fallthrough]];
    case Memory::Kind::device:
    case Memory::Kind::pool:
      give_pages(memory.device, memory.offset, memory.bytes);
      break;
    case Memory::Kind::pinned:
      munmap(memory.alias, bytes);
      break;
    case Memory::Kind::imported:
      munmap(memory.alias, bytes);
      munmap(reinterpret_cast<void*>(memory.address), bytes);
      break;
    case Memory::Kind::registered:
    case Memory::Kind::mapped:
      break;
  }
}

void end_memory(Context* context) {
  std::vector<std::shared_ptr<Memory>> ending;
  for (const auto& [address, memory] : all_memory())
    if (memory->context == context) ending.push_back(memory);
  for (const auto& memory : ending) free_memory(memory);
}

void add_range(uintptr_t address, size_t bytes) { table().ranges[address] = bytes; }
void remove_range(uintptr_t address) {
  const auto range = table().ranges.find(address);
  if (range == table().ranges.end()) return;
  forget_freed(address, address + range->second);
  table().ranges.erase(range);
}

bool is_of_driver(uintptr_t address) {
  for (const auto& [device, arena] : table().arenas)
    if (arena->holds(address)) return true;
  if (holder(table().ranges, address, [](size_t bytes) { return bytes; }) != table().ranges.end()) return true;
  return find_memory(address) != nullptr || was_freed(address);
}

std::string describe(uintptr_t address) {
  const std::shared_ptr<Memory> memory = find_memory(address);
  char text[200];
  if (memory != nullptr) {
    snprintf(text, sizeof text, "byte %zu of %zu bytes of %s at %#zx, device %d", size_t(address - memory->address),
             memory->bytes, name_of(memory->kind), size_t(memory->address), memory->device);
    return text;
  }
  if (was_freed(address)) return "in device memory that was freed";
  return "in device memory that nobody has allocated";
}

}  // namespace emu
