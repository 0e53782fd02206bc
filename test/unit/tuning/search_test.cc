#include "contrib/tuning/search.h"

#include <gtest/gtest.h>

#include <cmath>

#include "test/unit/tuning/reckoner.h"

namespace gpurdma::tuning {
namespace {

bool by(const Candidate& c, const char* name) { return c.algorithm == candidate(name).algorithm; }

// Doubling wins up to 64 KiB, then the ring, which likes pieces of 64 KiB and a depth of 16.
double reckoned(const Candidate& c, size_t bytes) {
  const double n = double(bytes);
  if (by(c, "doubling")) return 1 + n / 1000;
  if (!by(c, "ring")) return 1000 + n;
  return 40 +
         n / 3000 *
             (1 + 0.1 * std::abs(std::log2(double(c.piece) / (64 << 10))) + 0.1 * std::abs(std::log2(c.depth / 16.0)));
}

void nothing(const std::string&, double) {}

TEST(Search, FindsWhatIsFastest) {
  Reckoner reckoner(reckoned);
  const Result result = search(reckoner, Job{4}, {}, nothing);
  ASSERT_EQ(result.rows.size(), 2u);
  EXPECT_TRUE(by({result.rows[0].algorithm, 0, 0, 0}, "doubling"));
  EXPECT_EQ(result.rows[0].bytes.from, 0u);
  EXPECT_EQ(result.rows[0].bytes.to, 64u << 10);  // at 128 KiB, the size between, the ring is faster
  const TuningRow& ring = result.rows[1];
  EXPECT_TRUE(by({ring.algorithm, 0, 0, 0}, "ring"));
  EXPECT_TRUE(ring.bytes.from == 64 << 10 && ring.bytes.to == SIZE_MAX);
  EXPECT_TRUE(ring.piece == 64 << 10 && ring.depth == 16) << ring.piece << " " << ring.depth;
  ASSERT_EQ(result.sizes.size(), 13u);
  for (size_t i = 0; i < result.sizes.size(); ++i) {
    // Between 64 KiB and 16 MiB the formula gives several times to candidates whose plans are the same.
    if (result.sizes[i] > 64 << 10 && result.sizes[i] < 16 << 20) continue;
    EXPECT_EQ(result.table_timings[i].us, reckoned(result.table[i], result.sizes[i]));
    EXPECT_EQ(result.builtin_timings[i].us, reckoned(result.builtin[i], result.sizes[i]));
    EXPECT_LE(result.table_timings[i].us, result.builtin_timings[i].us * 1.03);
  }
}

TEST(Search, NoiseMakesNoMoreRows) {
  Search what;
  what.finals.rounds = 25;
  Reckoner reckoner(reckoned, 0.15);
  const Result result = search(reckoner, Job{4}, what, nothing);
  EXPECT_LE(result.rows.size(), 4u);
  for (size_t i = 0; i < result.sizes.size(); ++i)
    EXPECT_LE(reckoned(result.table[i], result.sizes[i]), 1.12 * reckoned(result.builtin[i], result.sizes[i]));
}

TEST(Search, ProgressGoesFromNothingToNearlyAll) {
  Search what;
  what.most_bytes = 4096;
  double last = -1;
  int steps = 0;
  Reckoner reckoner(reckoned);
  search(reckoner, Job{2}, what, [&](const std::string& next, double done) {
    EXPECT_GT(done, last);
    EXPECT_FALSE(next.empty());
    last = done;
    ++steps;
  });
  EXPECT_EQ(steps, 2 * 6);
  EXPECT_LT(last, 1);
}

}  // namespace
}  // namespace gpurdma::tuning
