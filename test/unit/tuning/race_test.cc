#include "contrib/tuning/race.h"

#include <gtest/gtest.h>

#include "test/unit/tuning/reckoner.h"

namespace gpurdma::tuning {
namespace {

const Candidate kRing = candidate("ring"), kDoubling = candidate("doubling");

double us_of(const Candidate& c, size_t) { return c.algorithm == kRing.algorithm ? 10 : 12; }

TEST(Race, ByMedianInTurn) {
  Reckoner reckoner(us_of);
  const std::vector<Timing> timings = race(reckoner, 64, {kDoubling, kRing}, {1000, 1e9, 6, 2});
  EXPECT_EQ(timings[0].us, 12);
  EXPECT_EQ(timings[1].us, 10);
  EXPECT_EQ(timings[0].noise, 0);
  EXPECT_EQ(fastest(timings), 1u);
  EXPECT_EQ(reckoner.last_calls, 83);                                            // a block of 1000 us
  EXPECT_EQ(reckoner.order.substr(reckoner.order.size() - 12), "drrddrrddrrd");  // who is first changes
  for (const auto& checked : reckoner.checks) EXPECT_EQ(checked.second, 1);
}

TEST(Race, WhoIsFarBehindIsMeasuredNoMore) {
  const auto blocks = [](double give_up) {
    Reckoner reckoner(us_of);
    race(reckoner, 64, {kDoubling, kRing}, {1000, 1e9, 20, give_up});
    return reckoner.blocks[to_text(kRing)] - reckoner.blocks[to_text(kDoubling)];
  };
  EXPECT_EQ(blocks(1.25), 0);
  EXPECT_EQ(blocks(1.15), 20 - kLeastRounds);
  Reckoner reckoner([](const Candidate& c, size_t) { return c.algorithm == kRing.algorithm ? 2000. : 6100.; });
  const std::vector<Timing> timings = race(reckoner, 64, {kDoubling, kRing}, {1000, 1e9, 20, 10});
  EXPECT_EQ(timings[0].us, 6100);  // known, if roughly
  EXPECT_EQ(reckoner.blocks[to_text(kRing)] - reckoner.blocks[to_text(kDoubling)], 20);
}

TEST(Race, EndsWithItsBudget) {
  Reckoner reckoner(us_of);
  race(reckoner, 64, {kDoubling, kRing}, {1000, 10000, 1000, 2});
  EXPECT_LT(reckoner.order.size(), 30u);
  Reckoner least(us_of);
  race(least, 64, {kDoubling, kRing}, {1000, 0, 1000, 2});
  EXPECT_GE(least.order.size(), 2u * kLeastRounds);
}

TEST(Race, NoiseIsTold) {
  Reckoner reckoner(us_of, 0.4);
  const Timing timing = race(reckoner, 64, {kRing}, {1000, 1e9, 101, 2})[0];
  EXPECT_NEAR(timing.us, 12, 0.6);
  EXPECT_NEAR(timing.noise, 0.1 / 1.2, 0.03);
}

}  // namespace
}  // namespace gpurdma::tuning
