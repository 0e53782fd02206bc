#include "reduce/types.h"

#include <gtest/gtest.h>

#include <complex>
#include <set>
#include <string>

namespace gpurdma {
namespace {

TEST(Types, SizesAreThoseOfTheCTypes) {
  struct FloatInt {
    float value;
    int index;
  };
  struct DoubleInt {
    double value;
    int index;
  };
  struct LongInt {
    long value;
    int index;
  };
  struct ShortInt {
    short value;
    int index;
  };
  struct LongDoubleInt {
    long double value;
    int index;
  };
  EXPECT_EQ(size_of(Type::int8), 1u);
  EXPECT_EQ(size_of(Type::uint64), 8u);
  EXPECT_EQ(size_of(Type::float16), 2u);
  EXPECT_EQ(size_of(Type::bfloat16), 2u);
  EXPECT_EQ(size_of(Type::long_double), sizeof(long double));
  EXPECT_EQ(size_of(Type::complex32), sizeof(std::complex<float>));
  EXPECT_EQ(size_of(Type::complex_long_double), sizeof(std::complex<long double>));
  EXPECT_EQ(size_of(Type::logical32), 4u);
  EXPECT_EQ(size_of(Type::cxx_bool), sizeof(bool));
  EXPECT_EQ(size_of(Type::loc_float_int), sizeof(FloatInt));
  EXPECT_EQ(size_of(Type::loc_double_int), sizeof(DoubleInt));
  EXPECT_EQ(size_of(Type::loc_long_int), sizeof(LongInt));
  EXPECT_EQ(size_of(Type::loc_short_int), sizeof(ShortInt));
  EXPECT_EQ(size_of(Type::loc_long_double_int), sizeof(LongDoubleInt));
  EXPECT_EQ(size_of(Type::two_double), 2 * sizeof(double));
}

TEST(Types, NamesAreUnique) {
  std::set<std::string> names;
  for (int i = 0; i < kTypes; ++i) names.insert(name_of(static_cast<Type>(i)));
  for (int i = 0; i < kOps; ++i) names.insert(name_of(static_cast<Op>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kTypes + kOps));
  EXPECT_STREQ(name_of(Op::minloc), "minloc");
  EXPECT_STREQ(name_of(Type::complex_long_double), "complex_long_double");
}

// The table of MPI 4.0, section 6.9.2, written out: for each op the types it is defined for, in the order of the enum.
TEST(Types, OpsAreDefinedWhereMpiSaysSo) {
  const std::string integers = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 ";
  const std::string reals = "float16 bfloat16 float32 float64 long_double ";
  const std::string complexes = "complex32 complex64 complex_long_double ";
  const std::string logicals = "logical8 logical16 logical32 logical64 cxx_bool ";
  const std::string pairs =
      "loc_float_int loc_double_int loc_long_int loc_int_int loc_short_int loc_long_double_int two_float two_double ";
  const struct {
    Op op;
    std::string types;
  } expected[] = {
      {Op::max, integers + reals},
      {Op::min, integers + reals},
      {Op::sum, integers + reals + complexes},
      {Op::prod, integers + reals + complexes},
      {Op::land, integers + logicals},
      {Op::lor, integers + logicals},
      {Op::lxor, integers + logicals},
      {Op::band, integers + "byte "},
      {Op::bor, integers + "byte "},
      {Op::bxor, integers + "byte "},
      {Op::maxloc, pairs},
      {Op::minloc, pairs},
  };
  ASSERT_EQ(std::size(expected), static_cast<size_t>(kOps));
  for (const auto& row : expected) {
    std::string types;
    for (int i = 0; i < kTypes; ++i) {
      const Type type = static_cast<Type>(i);
      if (defined(row.op, type)) types += name_of(type) + std::string(" ");
    }
    EXPECT_EQ(types, row.types) << name_of(row.op);
  }
}

}  // namespace
}  // namespace gpurdma
