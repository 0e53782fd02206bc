#include "contrib/tuning/table.h"

#include <gtest/gtest.h>

#include <string>

namespace gpurdma::tuning {
namespace {

// One row of times by finalist for each size.
std::string merged(const std::vector<std::vector<double>>& times, double spread, double noise = 0) {
  std::vector<Measured> sizes;
  for (const std::vector<double>& row : times) {
    sizes.push_back({0, {}});
    for (const double us : row) sizes.back().timings.push_back({us, noise});
  }
  std::string text;
  for (const Segment& s : merge(sizes, spread))
    text += std::to_string(s.first) + "-" + std::to_string(s.last) + ":" + std::to_string(s.finalist) + " ";
  return text;
}

TEST(Merge, ABestForAllIsOneRow) { EXPECT_EQ(merged({{1, 2}, {1, 2}, {3, 4}}, 0.03), "0-2:0 "); }

TEST(Merge, EachWhereItIsBetter) { EXPECT_EQ(merged({{1, 2}, {1, 2}, {4, 3}, {4, 3}}, 0.03), "0-1:0 2-3:1 "); }

TEST(Merge, WithinTheSpreadTheRowGoesOn) {
  EXPECT_EQ(merged({{100, 200}, {102, 100}, {100, 150}}, 0.03), "0-2:0 ");
  EXPECT_EQ(merged({{100, 200}, {104, 100}, {100, 150}}, 0.03), "0-0:0 1-1:1 2-2:0 ");
}

TEST(Merge, NoiseWidensTheSpreadWithinBounds) {
  EXPECT_EQ(merged({{100, 200}, {107, 100}, {100, 150}}, 0.03, 0.08), "0-2:0 ");
  EXPECT_EQ(merged({{100, 200}, {126, 100}, {100, 150}}, 0.03, 0.5), "0-0:0 1-1:1 2-2:0 ");
}

TEST(Merge, WhoReachesFartherIsTakenThenWhoIsFaster) {
  EXPECT_EQ(merged({{100, 101}, {100, 101}, {200, 100}}, 0.03), "0-2:1 ");
  EXPECT_EQ(merged({{100, 101}, {101, 100}, {101, 100}}, 0.03), "0-2:1 ");
  EXPECT_EQ(merged({{100, 101}, {100, 101}}, 0.03), "0-1:0 ");
}

TEST(Cliffs, AreWhereMoreTakesLess) {
  EXPECT_EQ(cliffs({1, 1, 1.01, 1, 2}, 0.03), (std::vector<size_t>{}));
  EXPECT_EQ(cliffs({1, 5, 4, 4, 3}, 0.03), (std::vector<size_t>{1, 3}));
}

}  // namespace
}  // namespace gpurdma::tuning
