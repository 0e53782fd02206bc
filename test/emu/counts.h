// What was done, counted for tests; see emu.h. Under the lock.
#pragma once
#include <cstdint>

#include "emu/memory.h"

namespace emu {

// A copy of so many bytes from one place to another; a place without memory is pageable host memory.
void count_copy(const Memory* to, const Memory* from, uint64_t bytes);
void count_launch(uint64_t bytes);
void count_wait();
void print_counts();

}  // namespace emu
