// The reduction kernels, by name: gpurdma_<op>_<type> for each op and type that kernel_for() (kernels.h) gives.
//
// A macro, since names without mangling cannot come from templates.
#include "device/reduce_kernels.h"

namespace {

using gpurdma::Op;
using gpurdma::Type;

template <Op kOp, Type kType>
__device__ inline void run(const gpurdma::ReduceArgs& args) {
  const uint64_t thread = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  gpurdma::reduce_thread<kOp, kType>(args.tasks[blockIdx.y], thread, uint64_t(gridDim.x) * blockDim.x);
}

}  // namespace

#define GPURDMA_KERNEL(op, type)                                                                                  \
  extern "C" __global__ void __launch_bounds__(gpurdma::kThreadsPerBlock)                                         \
      gpurdma_##op##_##type(const __grid_constant__ gpurdma::ReduceArgs args) {                                   \
    run<Op::op, Type::type>(args);                                                                                \
  }
#define GPURDMA_COMPARE(type) GPURDMA_KERNEL(max, type) GPURDMA_KERNEL(min, type)
#define GPURDMA_COMPUTE(type) GPURDMA_KERNEL(sum, type) GPURDMA_KERNEL(prod, type)
#define GPURDMA_LOGICAL(type) GPURDMA_KERNEL(land, type) GPURDMA_KERNEL(lor, type) GPURDMA_KERNEL(lxor, type)
#define GPURDMA_BITWISE(type) GPURDMA_KERNEL(band, type) GPURDMA_KERNEL(bor, type) GPURDMA_KERNEL(bxor, type)
#define GPURDMA_LOCATED(type) GPURDMA_KERNEL(maxloc, type) GPURDMA_KERNEL(minloc, type)
#define GPURDMA_SIGNED(type) GPURDMA_COMPARE(type)
#define GPURDMA_UNSIGNED(type) \
  GPURDMA_COMPARE(type) GPURDMA_COMPUTE(type) GPURDMA_LOGICAL(type) GPURDMA_BITWISE(type)
#define GPURDMA_REAL(type) GPURDMA_COMPARE(type) GPURDMA_COMPUTE(type)

GPURDMA_SIGNED(int8)
GPURDMA_SIGNED(int16)
GPURDMA_SIGNED(int32)
GPURDMA_SIGNED(int64)
GPURDMA_UNSIGNED(uint8)
GPURDMA_UNSIGNED(uint16)
GPURDMA_UNSIGNED(uint32)
GPURDMA_UNSIGNED(uint64)
GPURDMA_REAL(float16)
GPURDMA_REAL(bfloat16)
GPURDMA_REAL(float32)
GPURDMA_REAL(float64)
GPURDMA_KERNEL(prod, complex32)
GPURDMA_KERNEL(prod, complex64)
GPURDMA_LOCATED(loc_float_int)
GPURDMA_LOCATED(loc_double_int)
GPURDMA_LOCATED(loc_long_int)
GPURDMA_LOCATED(loc_int_int)
GPURDMA_LOCATED(loc_short_int)
GPURDMA_LOCATED(two_float)
GPURDMA_LOCATED(two_double)
