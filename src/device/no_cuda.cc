// For builds without the CUDA toolkit.
#include "device/gpus.h"

namespace gpurdma {

const bool kHasCuda = false;

std::unique_ptr<Gpus> open_gpus(const GpuSettings&) { return nullptr; }

}  // namespace gpurdma
