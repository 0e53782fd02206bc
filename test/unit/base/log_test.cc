#include "base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpurdma {
namespace {

std::vector<std::string> lines;
std::vector<log::Level> levels;

class Log : public testing::Test {
 protected:
  void SetUp() override {
    lines.clear();
    levels.clear();
    log::configure(log::Level::info, [](log::Level level, const char* line) {
      lines.push_back(line);
      levels.push_back(level);
    });
  }
  void TearDown() override { log::configure(log::Level::warn, nullptr); }
};

TEST_F(Log, LinesUpToTheLevelReachTheSink) {
  GPURDMA_LOG(error, "rank %d of %s", 3, "world");
  GPURDMA_LOG(info, "fine");
  GPURDMA_LOG(debug, "hidden");
  EXPECT_EQ(lines, (std::vector<std::string>{"rank 3 of world", "fine"}));
  EXPECT_EQ(levels, (std::vector<log::Level>{log::Level::error, log::Level::info}));
}

TEST_F(Log, ArgumentsOfHiddenLinesAreNotEvaluated) {
  int evaluated = 0;
  GPURDMA_LOG(trace, "%d", ++evaluated);
  EXPECT_EQ(evaluated, 0);
}

TEST_F(Log, LongLinesAreCut) {
  const std::string line(5000, 'x');
  GPURDMA_LOG(warn, "%s", line.c_str());
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_GE(lines[0].size(), 1000u);
  EXPECT_EQ(lines[0], line.substr(0, lines[0].size()));
}

}  // namespace
}  // namespace gpurdma
