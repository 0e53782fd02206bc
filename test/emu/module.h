// Modules, their functions, and launches. A module holds gpurdma's own kernels, whatever image it was loaded from.
#pragma once
#include <cstddef>

namespace emu {

struct Context;

// A kernel reads or writes at an address that a GPU would refuse.
void misaligned_access(const void* address, size_t bytes);

void end_modules(Context* context);
size_t living_modules();

}  // namespace emu
