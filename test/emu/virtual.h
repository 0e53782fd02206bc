// Virtual memory: reserved addresses, chunks of a device's memory that are mapped there, and who may touch them.
#pragma once
#include <cstddef>
#include <cstdint>

namespace emu {

struct Memory;

// The reserved range that mapped memory lies in.
void reservation_of(const Memory& memory, uintptr_t* address, size_t* bytes);

// Reserved ranges, and chunks that are neither released nor mapped: what a program may leave behind.
size_t living_reservations();
size_t living_chunks();

}  // namespace emu
