// Pinned host memory: pages that the CPU, all GPUs and the network may touch, kept out of forked children.
//
// Ordinary pages that the driver is told of, so that other processes and network cards can be given them too. All is
// called with a context entered, save where noted.
#pragma once
#include <cstddef>

#include "device/driver.h"

namespace gpurdma {

// `bytes` of it, a multiple of the page size, into *memory. On failure nothing is kept.
CUresult pin(const Driver& driver, size_t bytes, void** memory);

// Gives it back; also where its context is gone and could not be entered.
void unpin(const Driver& driver, void* memory, size_t bytes, CUresult entered);

}  // namespace gpurdma
