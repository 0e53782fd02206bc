// The arithmetic of the installed header gpurdma_mpi.h: what the product's own arithmetic and the oracle say too.
#include "gpurdma_mpi.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "reduce/arithmetic.h"
#include "reduce/host.h"
#include "test/unit/reduce/oracle.h"

namespace gpurdma {
namespace {

uint32_t bits(float x) { return bits_as<uint32_t>(x); }

TEST(GpurdmaMpi, EveryNumberBecomesTheSameFloat) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const uint16_t x = static_cast<uint16_t>(i);
    const float half = gpurdma_mpi_float16_to_float(x), brain = gpurdma_mpi_bfloat16_to_float(x);
    ASSERT_EQ(bits(half), bits(to_float(Float16{x}))) << std::hex << i;
    ASSERT_EQ(bits(brain), bits(to_float(Bfloat16{x}))) << std::hex << i;
    ASSERT_EQ(gpurdma_mpi_float16_is_nan(x) != 0, std::isnan(half)) << std::hex << i;
    ASSERT_EQ(gpurdma_mpi_bfloat16_is_nan(x) != 0, std::isnan(brain)) << std::hex << i;
    // And back: what is no NaN keeps its bits.
    ASSERT_TRUE(std::isnan(half) || gpurdma_mpi_float16_from_float(half) == x) << std::hex << i;
    ASSERT_TRUE(std::isnan(brain) || gpurdma_mpi_bfloat16_from_float(brain) == x) << std::hex << i;
  }
}

// All floats whose low bits are those of a tie, just below it or just above, or nothing.
TEST(GpurdmaMpi, FloatsAreRoundedTheSame) {
  for (uint32_t high = 0; high < 65536; ++high) {
    for (uint32_t low : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x2000u, 0x3000u, 0x7fffu, 0x8000u, 0x8001u,
                         0xefffu, 0xf000u, 0xf001u, 0xffffu}) {
      const float x = bits_as<float>(high << 16 | low);
      ASSERT_EQ(gpurdma_mpi_float16_from_float(x), round_to<Float16>(x).bits) << std::hex << bits(x);
      ASSERT_EQ(gpurdma_mpi_bfloat16_from_float(x), round_to<Bfloat16>(x).bits) << std::hex << bits(x);
    }
  }
}

struct Row {
  Type type;
  Op op;
  MPI_User_function* function;
};

const Row kRows[] = {
    {Type::float16, Op::sum, gpurdma_mpi_float16_sum},   {Type::float16, Op::prod, gpurdma_mpi_float16_prod},
    {Type::float16, Op::min, gpurdma_mpi_float16_min},   {Type::float16, Op::max, gpurdma_mpi_float16_max},
    {Type::bfloat16, Op::sum, gpurdma_mpi_bfloat16_sum}, {Type::bfloat16, Op::prod, gpurdma_mpi_bfloat16_prod},
    {Type::bfloat16, Op::min, gpurdma_mpi_bfloat16_min}, {Type::bfloat16, Op::max, gpurdma_mpi_bfloat16_max},
};

TEST(GpurdmaMpi, OpsGiveWhatTheOracleAndTheReductionsGive) {
  constexpr int kCount = 100003;
  std::mt19937_64 random(7);
  for (const Row& row : kRows) {
    std::vector<uint16_t> left(kCount), right(kCount), reduced(kCount);
    for (int i = 0; i < kCount; ++i) {
      test::draw(row.type, random, &left[i]);
      test::draw(row.type, random, &right[i]);
    }
    std::vector<uint16_t> out = right;
    int count = kCount;
    row.function(left.data(), out.data(), &count, nullptr);
    host_reduce(row.op, row.type)(reduced.data(), left.data(), right.data(), kCount);
    for (int i = 0; i < kCount; ++i) {
      uint16_t expected;
      test::oracle(row.op, row.type, &expected, &left[i], &right[i]);
      ASSERT_TRUE(test::same(row.type, &expected, &out[i]))
          << "row " << &row - kRows << std::hex << ": " << left[i] << " and " << right[i] << " give " << out[i];
      ASSERT_TRUE(test::same(row.type, &reduced[i], &out[i]))
          << "row " << &row - kRows << std::hex << ": " << left[i] << " and " << right[i] << " give " << out[i];
    }
  }
}

}  // namespace
}  // namespace gpurdma
