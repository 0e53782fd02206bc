// For builds without nvcc.
#include "device/kernels.h"

namespace gpurdma {

const void* kernel_image() { return nullptr; }

}  // namespace gpurdma
