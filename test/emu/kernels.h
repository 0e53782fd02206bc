// The kernels that the emulated devices run.
#pragma once
#include "device/kernel_args.h"
#include "reduce/types.h"

namespace emu {

// Does what thread number `thread` of `threads` does of a task, whose addresses the CPU can reach.
using Kernel = void (*)(const gpurdma::ReduceTask& task, uint64_t thread, uint64_t threads);

// By its name, "gpurdma_sum_float32"; nullptr: there is none. Sets the bytes of an element.
Kernel find_kernel(const char* name, size_t* element);

}  // namespace emu
