#include "base/clock.h"

#include <gtest/gtest.h>

namespace gpurdma {
namespace {

TEST(Clock, NeverGoesBack) {
  uint64_t before = clock::ticks();
  for (int i = 0; i < 1000; ++i) {
    const uint64_t now = clock::ticks();
    ASSERT_GE(now, before);
    before = now;
  }
}

TEST(Clock, SecondsAgreeWithTheSystem) {
  const uint64_t ticks = clock::ticks(), nanoseconds = clock::nanoseconds();
  timespec pause{0, 50000000};
  nanosleep(&pause, nullptr);
  const double counted = clock::seconds(clock::ticks() - ticks);
  const double passed = double(clock::nanoseconds() - nanoseconds) * 1e-9;
  EXPECT_GE(passed, 0.05);
  EXPECT_NEAR(counted, passed, 0.1 * passed);  // calibrated for as long as the process runs: not exact yet
}

TEST(Clock, NothingIsSinceTheFuture) {
  const uint64_t now = clock::ticks();
  EXPECT_EQ(clock::since(now + 1000000, now), 0);
  EXPECT_GT(clock::since(now - 1000000, now), 0);
}

}  // namespace
}  // namespace gpurdma
