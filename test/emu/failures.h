// Failures on request: GPURDMA_EMU_FAIL, see emu.h.
#pragma once
#include <cuda.h>

namespace emu {

// Counts a call of the function; what it is to return instead of being done, or CUDA_SUCCESS. Under the lock.
CUresult failure_of_call(const char* function);

}  // namespace emu
