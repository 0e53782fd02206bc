#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "base/counters.h"
#include "base/log.h"
#include "coll/catalogue.h"
#include "gpurdma.h"
#include "test/unit/boundary.h"

namespace gpurdma {
namespace {

class Sight : public ::testing::Test {
 protected:
  ~Sight() override { log::configure(log::Level::warn, nullptr); }

  std::string summary(size_t size) {
    std::vector<char> text(size + 1, '#');
    length = gpurdma_summary(b.runtime, text.data(), size);
    EXPECT_EQ(text[size], '#');
    return size ? text.data() : "";
  }

  Boundary b;
  size_t length = 0;
};

TEST_F(Sight, EveryAlgorithmAndPathHasCountersWithNamesOfTheirOwn) {
  const gpurdma_counter_t* counters;
  const size_t n = gpurdma_counters(&counters);
  EXPECT_EQ(n, Counters::kPaths * (3 * catalogue().size() + 1) + size_t(GpuCount::count));
  std::set<std::string> names;
  for (size_t i = 0; i < n; ++i) {
    names.insert(counters[i].name);
    EXPECT_GT(std::strlen(counters[i].help), 0u);
    EXPECT_EQ(gpurdma_counter_read(nullptr, i), 0u);
  }
  EXPECT_EQ(names.size(), n);
  for (const Algorithm& algorithm : catalogue())
    for (const char* what : {"_calls", "_bytes", "_time_ns"})
      EXPECT_EQ(names.count(std::string(algorithm.name) + "_self" + what), 1u) << algorithm.name << what;
}

TEST_F(Sight, CallsAreCounted) {
  b.settings.algorithm = "ring";
  b.open();
  EXPECT_EQ(summary(4096), "gpurdma ran nothing on this process\n");
  std::vector<int> in(25, 1), out(25);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(b.sum(in, out), GPURDMA_OK);
  EXPECT_EQ(b.counter("ring_self_calls"), 3u);
  EXPECT_EQ(b.counter("ring_self_bytes"), 300u);
  EXPECT_GT(b.counter("ring_self_time_ns"), 0u);
  EXPECT_EQ(b.counter("doubling_self_calls"), 0u);
  EXPECT_EQ(b.counter("self_sent_bytes"), 0u);
  EXPECT_EQ(gpurdma_counter_read(b.runtime, 1000000), 0u);
}

TEST_F(Sight, TheSummaryFitsWhereItIsPut) {
  b.settings.algorithm = "ring";
  b.open();
  std::vector<int> in(25, 1), out(25);
  EXPECT_EQ(b.sum(in, out), GPURDMA_OK);
  const std::string whole = summary(65536);
  EXPECT_EQ(whole.size(), length);
  EXPECT_NE(whole.find("allreduce   ring          self                   1            100 "), std::string::npos)
      << whole;
  EXPECT_EQ(summary(20), whole.substr(0, 19));
  EXPECT_EQ(length, 19u);
  EXPECT_EQ(summary(1), "");
  EXPECT_EQ(summary(0), "");
  EXPECT_EQ(length, 0u);
}

}  // namespace
}  // namespace gpurdma
