// The numbers that mca/ uses in C are those of reduce/types.h. This file checks at compile time.
#include "mca/numbers.h"

#include "reduce/types.h"

namespace gpurdma {

constexpr bool same(gpurdma_op_number c, Op cxx) { return int(c) == int(cxx); }
constexpr bool same(gpurdma_type_number c, Type cxx) { return int(c) == int(cxx); }

static_assert(GPURDMA_OP_COUNT == kOps);
static_assert(same(GPURDMA_OP_MAX, Op::max));
static_assert(same(GPURDMA_OP_MIN, Op::min));
static_assert(same(GPURDMA_OP_SUM, Op::sum));
static_assert(same(GPURDMA_OP_PROD, Op::prod));
static_assert(same(GPURDMA_OP_LAND, Op::land));
static_assert(same(GPURDMA_OP_BAND, Op::band));
static_assert(same(GPURDMA_OP_LOR, Op::lor));
static_assert(same(GPURDMA_OP_BOR, Op::bor));
static_assert(same(GPURDMA_OP_LXOR, Op::lxor));
static_assert(same(GPURDMA_OP_BXOR, Op::bxor));
static_assert(same(GPURDMA_OP_MAXLOC, Op::maxloc));
static_assert(same(GPURDMA_OP_MINLOC, Op::minloc));

static_assert(GPURDMA_TYPE_COUNT == kTypes);
static_assert(same(GPURDMA_TYPE_INT8, Type::int8));
static_assert(same(GPURDMA_TYPE_INT16, Type::int16));
static_assert(same(GPURDMA_TYPE_INT32, Type::int32));
static_assert(same(GPURDMA_TYPE_INT64, Type::int64));
static_assert(same(GPURDMA_TYPE_UINT8, Type::uint8));
static_assert(same(GPURDMA_TYPE_UINT16, Type::uint16));
static_assert(same(GPURDMA_TYPE_UINT32, Type::uint32));
static_assert(same(GPURDMA_TYPE_UINT64, Type::uint64));
static_assert(same(GPURDMA_TYPE_FLOAT16, Type::float16));
static_assert(same(GPURDMA_TYPE_BFLOAT16, Type::bfloat16));
static_assert(same(GPURDMA_TYPE_FLOAT32, Type::float32));
static_assert(same(GPURDMA_TYPE_FLOAT64, Type::float64));
static_assert(same(GPURDMA_TYPE_LONG_DOUBLE, Type::long_double));
static_assert(same(GPURDMA_TYPE_COMPLEX32, Type::complex32));
static_assert(same(GPURDMA_TYPE_COMPLEX64, Type::complex64));
static_assert(same(GPURDMA_TYPE_COMPLEX_LONG_DOUBLE, Type::complex_long_double));
static_assert(same(GPURDMA_TYPE_LOGICAL8, Type::logical8));
static_assert(same(GPURDMA_TYPE_LOGICAL16, Type::logical16));
static_assert(same(GPURDMA_TYPE_LOGICAL32, Type::logical32));
static_assert(same(GPURDMA_TYPE_LOGICAL64, Type::logical64));
static_assert(same(GPURDMA_TYPE_CXX_BOOL, Type::cxx_bool));
static_assert(same(GPURDMA_TYPE_BYTE, Type::byte));
static_assert(same(GPURDMA_TYPE_LOC_FLOAT_INT, Type::loc_float_int));
static_assert(same(GPURDMA_TYPE_LOC_DOUBLE_INT, Type::loc_double_int));
static_assert(same(GPURDMA_TYPE_LOC_LONG_INT, Type::loc_long_int));
static_assert(same(GPURDMA_TYPE_LOC_INT_INT, Type::loc_int_int));
static_assert(same(GPURDMA_TYPE_LOC_SHORT_INT, Type::loc_short_int));
static_assert(same(GPURDMA_TYPE_LOC_LONG_DOUBLE_INT, Type::loc_long_double_int));
static_assert(same(GPURDMA_TYPE_TWO_FLOAT, Type::two_float));
static_assert(same(GPURDMA_TYPE_TWO_DOUBLE, Type::two_double));

}  // namespace gpurdma
