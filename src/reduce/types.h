// The op x type table: which reductions exist, and what an element of each type is.
//
// The one list that MPI mapping, host reductions, device kernels, tests and benches draw from. Ops and types are MPI's
// predefined ones, named by what they are and not by the language that names them: MPI_INT and MPI_INTEGER4 are both
// int32. An op on a type that MPI does not define it for is `!defined(op, type)`.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gpurdma {

// Values are part of the C boundary (gpurdma.h).
enum class Op : int { max, min, sum, prod, land, band, lor, bor, lxor, bxor, maxloc, minloc };
constexpr int kOps = 12;

// loc types are MPI's value and index pairs in C layout; two_* are Fortran's pairs of equal types.
// logicalN: Fortran LOGICAL of N bits (any nonzero value is true, the result is 0 or 1); cxx_bool: C's _Bool.
// clang-format off
enum class Type : int {
  int8, int16, int32, int64, uint8, uint16, uint32, uint64,
  float16, bfloat16, float32, float64, long_double,
  complex32, complex64, complex_long_double,   // named by the bits of one part
  logical8, logical16, logical32, logical64, cxx_bool, byte,
  loc_float_int, loc_double_int, loc_long_int, loc_int_int, loc_short_int, loc_long_double_int,
  two_float, two_double,                       // MPI_2REAL, MPI_2DOUBLE_PRECISION; MPI_2INTEGER is loc_int_int
};
// clang-format on
constexpr int kTypes = 30;

size_t size_of(Type type);  // bytes between two consecutive elements
const char* name_of(Op op);
const char* name_of(Type type);
bool defined(Op op, Type type);

}  // namespace gpurdma
