// Every predefined op and every predefined type with the ops that MPI defines for it: C, C++ and Fortran.
//
// This table follows the MPI standard's own list, with the types of gpurdma_mpi.h behind it, which have ops of their
// own (op_for); it is written by hand and shares nothing with the product's. MPI_CHAR is no integer for the standard,
// but Open MPI reduces it and programs rely on it. Left out are MPI_REAL16 and MPI_COMPLEX32, which go to the component
// beneath (beneath.cc), and MPI_REAL2, which no release that is tested offers.
#pragma once
#include "gpurdma_mpi.h"
#include "oracle.h"
#include "sixteen.h"

namespace oracle {

struct NamedOp {
  const char* name;
  MPI_Op handle;
  Op op;
};

inline std::vector<NamedOp> all_ops() {
  return {
      {"MPI_MAX", MPI_MAX, Op::max},    {"MPI_MIN", MPI_MIN, Op::min},          {"MPI_SUM", MPI_SUM, Op::sum},
      {"MPI_PROD", MPI_PROD, Op::prod}, {"MPI_LAND", MPI_LAND, Op::land},       {"MPI_BAND", MPI_BAND, Op::band},
      {"MPI_LOR", MPI_LOR, Op::lor},    {"MPI_BOR", MPI_BOR, Op::bor},          {"MPI_LXOR", MPI_LXOR, Op::lxor},
      {"MPI_BXOR", MPI_BXOR, Op::bxor}, {"MPI_MAXLOC", MPI_MAXLOC, Op::maxloc}, {"MPI_MINLOC", MPI_MINLOC, Op::minloc}};
}

// The groups of the standard's section on predefined reduction operations.
enum class Group { c_integer, fortran_integer, address, real, complex, logical, byte, pair };

inline bool defined(Group group, Op op) {
  switch (op) {
    case Op::max:
    case Op::min:
      return group == Group::c_integer || group == Group::fortran_integer || group == Group::address ||
             group == Group::real;
    case Op::sum:
    case Op::prod:
      return defined(group, Op::max) || group == Group::complex;
    case Op::land:
    case Op::lor:
    case Op::lxor:
      return group == Group::c_integer || group == Group::logical;
    case Op::band:
    case Op::bor:
    case Op::bxor:
      return group == Group::c_integer || group == Group::fortran_integer || group == Group::address ||
             group == Group::byte;
    default:
      return group == Group::pair;
  }
}

struct NamedType {
  const char* name;
  MPI_Datatype handle;
  Group group;
  Elements elements;
};

namespace detail {

inline Elements integer_of(MPI_Datatype type) {
  int bytes = 0;
  MPI_Type_size(type, &bytes);
  return bytes == 1   ? elements<Integer<int8_t>>()
         : bytes == 2 ? elements<Integer<int16_t>>()
         : bytes == 4 ? elements<Integer<int32_t>>()
                      : elements<Integer<int64_t>>();
}

inline Elements logical_of(MPI_Datatype type) {
  int bytes = 0;
  MPI_Type_size(type, &bytes);
  return bytes == 1   ? elements<Logical<int8_t>>()
         : bytes == 2 ? elements<Logical<int16_t>>()
         : bytes == 4 ? elements<Logical<int32_t>>()
                      : elements<Logical<int64_t>>();
}

}  // namespace detail

#define ROW(type, group, elements) \
  { #type, type, Group::group, elements }  // the name beside the handle
inline std::vector<NamedType> all_types() {
  using namespace detail;
  std::vector<NamedType> list = {
      ROW(MPI_SIGNED_CHAR, c_integer, elements<Integer<signed char>>()),
      ROW(MPI_CHAR, c_integer, elements<Integer<char>>()),
      ROW(MPI_SHORT, c_integer, elements<Integer<short>>()),
      ROW(MPI_INT, c_integer, elements<Integer<int>>()),
      ROW(MPI_LONG, c_integer, elements<Integer<long>>()),
      ROW(MPI_LONG_LONG, c_integer, elements<Integer<long long>>()),
      ROW(MPI_LONG_LONG_INT, c_integer, elements<Integer<long long>>()),
      ROW(MPI_UNSIGNED_CHAR, c_integer, elements<Integer<unsigned char>>()),
      ROW(MPI_UNSIGNED_SHORT, c_integer, elements<Integer<unsigned short>>()),
      ROW(MPI_UNSIGNED, c_integer, elements<Integer<unsigned>>()),
      ROW(MPI_UNSIGNED_LONG, c_integer, elements<Integer<unsigned long>>()),
      ROW(MPI_UNSIGNED_LONG_LONG, c_integer, elements<Integer<unsigned long long>>()),
      ROW(MPI_INT8_T, c_integer, elements<Integer<int8_t>>()),
      ROW(MPI_INT16_T, c_integer, elements<Integer<int16_t>>()),
      ROW(MPI_INT32_T, c_integer, elements<Integer<int32_t>>()),
      ROW(MPI_INT64_T, c_integer, elements<Integer<int64_t>>()),
      ROW(MPI_UINT8_T, c_integer, elements<Integer<uint8_t>>()),
      ROW(MPI_UINT16_T, c_integer, elements<Integer<uint16_t>>()),
      ROW(MPI_UINT32_T, c_integer, elements<Integer<uint32_t>>()),
      ROW(MPI_UINT64_T, c_integer, elements<Integer<uint64_t>>()),
      ROW(MPI_AINT, address, elements<Integer<MPI_Aint>>()),
      ROW(MPI_OFFSET, address, elements<Integer<MPI_Offset>>()),
      ROW(MPI_COUNT, address, elements<Integer<MPI_Count>>()),
      ROW(MPI_INTEGER, fortran_integer, integer_of(MPI_INTEGER)),
      ROW(MPI_INTEGER1, fortran_integer, elements<Integer<int8_t>>()),
      ROW(MPI_INTEGER2, fortran_integer, elements<Integer<int16_t>>()),
      ROW(MPI_INTEGER4, fortran_integer, elements<Integer<int32_t>>()),
      ROW(MPI_INTEGER8, fortran_integer, elements<Integer<int64_t>>()),
      ROW(MPI_FLOAT, real, elements<Real<float>>()),
      ROW(MPI_DOUBLE, real, elements<Real<double>>()),
      ROW(MPI_LONG_DOUBLE, real, elements<Real<long double>>()),
      ROW(MPI_REAL, real, elements<Real<float>>()),
      ROW(MPI_DOUBLE_PRECISION, real, elements<Real<double>>()),
      ROW(MPI_REAL4, real, elements<Real<float>>()),
      ROW(MPI_REAL8, real, elements<Real<double>>()),
      ROW(MPI_C_COMPLEX, complex, elements<Complex<float>>()),
      ROW(MPI_C_FLOAT_COMPLEX, complex, elements<Complex<float>>()),
      ROW(MPI_C_DOUBLE_COMPLEX, complex, elements<Complex<double>>()),
      ROW(MPI_C_LONG_DOUBLE_COMPLEX, complex, elements<Complex<long double>>()),
#ifdef MPI_CXX_FLOAT_COMPLEX
      ROW(MPI_CXX_FLOAT_COMPLEX, complex, elements<Complex<float>>()),
      ROW(MPI_CXX_DOUBLE_COMPLEX, complex, elements<Complex<double>>()),
      ROW(MPI_CXX_LONG_DOUBLE_COMPLEX, complex, elements<Complex<long double>>()),
      ROW(MPI_CXX_BOOL, logical, elements<Logical<unsigned char>>()),
#endif
      ROW(MPI_COMPLEX, complex, elements<Complex<float>>()),
      ROW(MPI_DOUBLE_COMPLEX, complex, elements<Complex<double>>()),
      ROW(MPI_COMPLEX8, complex, elements<Complex<float>>()),
      ROW(MPI_COMPLEX16, complex, elements<Complex<double>>()),
      ROW(MPI_C_BOOL, logical, elements<Logical<unsigned char>>()),
      ROW(MPI_LOGICAL, logical, logical_of(MPI_LOGICAL)),
      ROW(MPI_LOGICAL1, logical, elements<Logical<int8_t>>()),
      ROW(MPI_LOGICAL2, logical, elements<Logical<int16_t>>()),
      ROW(MPI_LOGICAL4, logical, elements<Logical<int32_t>>()),
      ROW(MPI_LOGICAL8, logical, elements<Logical<int64_t>>()),
      ROW(MPI_BYTE, byte, elements<Integer<uint8_t>>()),
      {"MPI_FLOAT_INT", MPI_FLOAT_INT, Group::pair, elements<Pair<float, int, Real<float>>>()},
      {"MPI_DOUBLE_INT", MPI_DOUBLE_INT, Group::pair, elements<Pair<double, int, Real<double>>>()},
      {"MPI_LONG_INT", MPI_LONG_INT, Group::pair, elements<Pair<long, int, Integer<long>>>()},
      {"MPI_2INT", MPI_2INT, Group::pair, elements<Pair<int, int, Integer<int>>>()},
      {"MPI_SHORT_INT", MPI_SHORT_INT, Group::pair, elements<Pair<short, int, Integer<short>>>()},
      {"MPI_LONG_DOUBLE_INT", MPI_LONG_DOUBLE_INT, Group::pair, elements<Pair<long double, int, Real<long double>>>()},
      {"MPI_2REAL", MPI_2REAL, Group::pair, elements<Pair<float, float, Real<float>>>()},
      {"MPI_2DOUBLE_PRECISION", MPI_2DOUBLE_PRECISION, Group::pair, elements<Pair<double, double, Real<double>>>()},
      {"MPI_2INTEGER", MPI_2INTEGER, Group::pair, elements<Pair<int, int, Integer<int>>>()},
      {"float16", gpurdma_mpi_float16(), Group::real, elements<Sixteen<11>>()},
      {"bfloat16", gpurdma_mpi_bfloat16(), Group::real, elements<Sixteen<8>>()},
  };
  return list;
}
#undef ROW

// Open MPI leaves out some optional Fortran types, and says so when asked to reduce them locally.
inline bool known(MPI_Datatype type, MPI_Op op) {
  std::vector<unsigned char> in(64), out(64);
  MPI_Errhandler before;
  MPI_Comm_get_errhandler(MPI_COMM_SELF, &before);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int bytes = 0;
  const bool works = type != MPI_DATATYPE_NULL && MPI_Type_size(type, &bytes) == MPI_SUCCESS && bytes > 0 &&
                     MPI_Reduce_local(in.data(), out.data(), 1, type, op) == MPI_SUCCESS;
  MPI_Comm_set_errhandler(MPI_COMM_SELF, before);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&before);
  return works;
}

// The op to hand to MPI with a type.
inline MPI_Op op_for(const NamedType& type, const NamedOp& op) { return gpurdma_mpi_op(op.handle, type.handle); }

inline bool offered(const NamedType& type, const NamedOp& op) { return known(type.handle, op_for(type, op)); }

}  // namespace oracle
