// The fat binary that nvcc made of kernels.cu, as constant data.
#include "device/kernels.h"

asm(R"(
  .pushsection .rodata
  .balign 64
gpurdma_kernel_image:
  .incbin "src/device/kernels.fatbin"
  .popsection
)");

namespace gpurdma {

extern "C" {
[[gnu::visibility("hidden")]] extern const char gpurdma_kernel_image[];
}

const void* kernel_image() { return gpurdma_kernel_image; }

}  // namespace gpurdma
