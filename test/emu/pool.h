// Memory pools; see pool.cc.
#pragma once
#include <cstddef>

namespace emu {

size_t living_pools();  // that the program has made

}  // namespace emu
