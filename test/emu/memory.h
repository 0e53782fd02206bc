// What the driver knows of memory: one table of everything that was allocated, registered or mapped, by address.
#pragma once
#include <cstdint>
#include <memory>

#include "emu/arena.h"
#include "emu/driver.h"

namespace emu {

struct Memory {
  enum class Kind { device, managed, pinned, registered, pool, mapped, imported };

  Kind kind = Kind::device;
  uintptr_t address = 0;  // as the program sees it
  size_t bytes = 0;       // as it asked for
  char* alias = nullptr;  // where the emulator reaches it
  int device = 0;
  Context* context = nullptr;  // nullptr: pool and mapped
  uint64_t id = 0;
  unsigned flags = 0;           // of cuMemHostAlloc and cuMemHostRegister
  const void* owner = nullptr;  // pool: the pool. mapped: the reservation
  size_t offset = 0;            // of its pages in the device's arena, but for host memory and imported
  uint64_t accessible = ~0ull;  // mapped and pool: the devices that may touch it, as bits

  bool on_host() const { return kind == Kind::pinned || kind == Kind::registered; }
  bool on_arena() const {
    return kind == Kind::device || kind == Kind::managed || kind == Kind::pool || kind == Kind::mapped;
  }
};

// The memory that `address` lies in, or nullptr.
std::shared_ptr<Memory> find_memory(uintptr_t address);
// Where the emulator reaches [address, address + bytes), all of which must be known. Without a memory: the address is
// none that the driver knows, so that it belongs to the program alone. Misuse comes as *result: freed memory, and what
// runs over the end.
struct Place {
  char* data = nullptr;
  std::shared_ptr<Memory> memory;
};
Place place_of(uintptr_t address, size_t bytes, const char* function, CUresult* result);

void add_memory(std::shared_ptr<Memory> memory);
void remove_memory(const Memory& memory);

Arena& arena_of(int device);
// Pages of a device, within its size. False: out of memory.
bool take_pages(int device, size_t bytes, size_t* offset);
void give_pages(int device, size_t offset, size_t bytes);
// Memory of a device where the arena shows it: of cuMemAlloc, managed, of a pool.
CUresult allocate(Memory::Kind kind, size_t bytes, int device, Context* context, std::shared_ptr<Memory>* memory);
// Takes the memory out of the table, and gives back what it stands on; and the second alone.
void free_memory(const std::shared_ptr<Memory>& memory);
void give_back(const Memory& memory);

// Takes all memory of a context that ends.
void end_memory(Context* context);

// Address ranges that are the driver's although nothing may be there now (reserved ones).
void add_range(uintptr_t address, size_t bytes);
void remove_range(uintptr_t address);
bool is_of_driver(uintptr_t address);

// What a person is to be told of an address: "in 4096 bytes of device memory (cuMemAlloc) at 0x...", "in freed memory".
// Without the lock: best effort.
std::string describe(uintptr_t address);

const std::map<uintptr_t, std::shared_ptr<Memory>>& all_memory();

}  // namespace emu
