#include "coll/tuning_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <random>
#include <string>

namespace gpurdma {
namespace {

const std::string kNames = algorithm_names(Collective::allreduce);

std::string error_of(std::string_view text) { return parse_tuning(text).error; }

std::string lines_of(const std::vector<TuningRow>& rows) {
  std::string lines;
  for (const TuningRow& row : rows) lines += to_line(row) + "\n";
  return lines;
}

// A file with `text` in it, removed at the end.
class File {
 public:
  explicit File(const std::string& text) {
    const int handle = mkstemp(path_);
    EXPECT_EQ(write(handle, text.data(), text.size()), ssize_t(text.size()));
    close(handle);
  }
  ~File() { unlink(path_); }
  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/gpurdma-tuning-XXXXXX";
};

TEST(TuningFile, EveryPartIsRead) {
  const ParsedTuning parsed = parse_tuning(
      "# measured\n\n  allreduce  ranks 2-7  nodes 1  bytes 0-8K  ring  piece 32k\tdepth 4  radix 3 # why\n");
  ASSERT_EQ(parsed.error, "");
  ASSERT_EQ(parsed.rows.size(), 1u);
  const TuningRow& row = parsed.rows[0];
  EXPECT_EQ(row.algorithm, find_algorithm(Collective::allreduce, "ring"));
  EXPECT_TRUE(row.ranks.from == 2 && row.ranks.to == 7);
  EXPECT_TRUE(row.nodes.from == 1 && row.nodes.to == 1);
  EXPECT_TRUE(row.bytes.from == 0 && row.bytes.to == 8192);
  EXPECT_TRUE(row.piece == 32768 && row.depth == 4 && row.radix == 3);
}

TEST(TuningFile, WhatIsLeftOutIsAny) {
  const ParsedTuning parsed = parse_tuning("allreduce ring");
  ASSERT_EQ(parsed.rows.size(), 1u);
  const TuningRow& row = parsed.rows[0];
  EXPECT_TRUE(row.ranks.holds(1) && row.ranks.holds(1 << 30) && row.nodes.holds(1) && row.nodes.holds(1 << 30));
  EXPECT_TRUE(row.bytes.holds(0) && row.bytes.holds(SIZE_MAX));
  EXPECT_EQ(to_line(row), "allreduce  ranks 1-  bytes 0-  ring  piece 32K  depth 8");
}

TEST(TuningFile, ALineGivesTheSameRowAgain) {
  for (const char* line : {"allreduce  ranks 2-7  bytes 0-8K  doubling  piece 32K  depth 8",
                           "allreduce  ranks 8-  nodes 2-  bytes 1M-  ring  piece 1000  depth 1  radix 64",
                           "allreduce  ranks 4  nodes 1  bytes 8G  ring  piece 1G  depth 1024"}) {
    const ParsedTuning parsed = parse_tuning(line);
    EXPECT_EQ(parsed.error, "");
    EXPECT_EQ(lines_of(parsed.rows), std::string(line) + "\n");
  }
  const Span<const TuningRow> builtin = builtin_tuning();
  const std::string lines = lines_of({builtin.begin(), builtin.end()});
  EXPECT_EQ(lines_of(parse_tuning(lines).rows), lines);
}

TEST(TuningFile, AnErrorSaysWhereAndWhatIsExpected) {
  EXPECT_EQ(error_of("\n# x\nallreduce ranks 2 bytes 1- rng piece 3"),
            "3:28: unknown algorithm \"rng\"; there are " + kNames);
  EXPECT_EQ(error_of("allreduce ranks 2"), "1:18: the line ends without an algorithm; there are " + kNames);
  EXPECT_EQ(error_of("reduce ring"), "1:1: unknown collective \"reduce\"; there are allreduce");
  EXPECT_EQ(error_of("allreduce ring ring"),
            "1:16: expected one of ranks, nodes, gpus, bytes, piece, depth, radix, not \"ring\"");
  EXPECT_EQ(error_of("allreduce ring depth 4 depth 4"), "1:24: depth is given twice");
  EXPECT_EQ(error_of("allreduce bytes 7-2 ring"), "1:17: the range \"7-2\" ends before it begins");
  EXPECT_EQ(error_of("allreduce ranks 0-2 ring"), "1:17: expected a range from 1 to 2147483647, not \"0-2\"");
  EXPECT_EQ(error_of("allreduce ranks 1-3000000000 ring").substr(0, 28), "1:17: expected a range from ");
  EXPECT_EQ(error_of("allreduce ring piece 2G"), "1:22: expected a number from 1 to 1G, not \"2G\"");
  EXPECT_EQ(error_of("allreduce ring depth 0"), "1:22: expected a number from 1 to 1K, not \"0\"");
  EXPECT_EQ(error_of("allreduce ring radix 1"), "1:22: expected a number from 2 to 64, not \"1\"");
  EXPECT_EQ(error_of("allreduce ring radix"), "1:21: expected a number from 2 to 64, not the end of the line");
  for (const char* range : {"-3", "3--4", "1-2-3", "x", "1x", "1KK", "8000000000000000000G", "99999999999999999999",
                            "18446744073709551615", "1-18446744073709551615", "0x10", "+1", "1.5"}) {
    EXPECT_EQ(error_of(std::string("allreduce bytes ") + range + " ring"),
              std::string("1:17: expected a range, as 2-7, 8K- or 8, not \"") + range + "\"");
  }
}

TEST(TuningFile, FilesOfOtherEditors) {
  const std::string row = "allreduce  ranks 2  bytes 0-  ring  piece 32K  depth 8\n";
  EXPECT_EQ(lines_of(parse_tuning("\xEF\xBB\xBF"
                                  "allreduce ranks 2 ring\r\n\r\n#\r\nallreduce ranks 2 ring")
                         .rows),
            row + row);
  EXPECT_EQ(lines_of(parse_tuning("").rows), "");
  EXPECT_EQ(error_of("\n\r\n  # nothing"), "");
  EXPECT_NE(error_of("\xFF\xFE"
                     "a\0l\0"),
            "");  // UTF-16
  EXPECT_EQ(error_of(std::string_view("allreduce ring\0", 15)),
            "1:11: unknown algorithm \"ring?\"; there are " + kNames);
  EXPECT_EQ(error_of(std::string(100000, 'x')),
            "1:1: unknown collective \"" + std::string(40, 'x') + "...\"; there are allreduce");
}

TEST(TuningFile, AFileIsReadOrTheReasonSaid) {
  EXPECT_EQ(lines_of(read_tuning(File("allreduce ring depth 3").path()).rows),
            "allreduce  ranks 1-  bytes 0-  ring  piece 32K  depth 3\n");
  EXPECT_EQ(read_tuning(File("").path()).error, "");
  const File wrong("\nx");
  EXPECT_EQ(read_tuning(wrong.path()).error,
            std::string(wrong.path()) + ":2:1: unknown collective \"x\"; there are allreduce");
  EXPECT_EQ(read_tuning("/none/there").error, "/none/there: cannot be opened: No such file or directory");
  EXPECT_EQ(read_tuning("/").error, "/: is not a regular file");
  EXPECT_EQ(read_tuning("/dev/zero").error, "/dev/zero: is not a regular file");
  const File large(std::string(10 << 20, '\n'));
  EXPECT_EQ(read_tuning(large.path()).error,
            std::string(large.path()) + ": is too large for a tuning file: more than 1M");
  const File pipe("");
  unlink(pipe.path());
  ASSERT_EQ(mkfifo(pipe.path(), 0600), 0);
  EXPECT_EQ(read_tuning(pipe.path()).error, std::string(pipe.path()) + ": is not a regular file");  // and no wait
}

// Whatever the bytes: no crash, and either rows that can be written and read again, or an error with a place.
TEST(TuningFile, AnyBytesAreSurvived) {
  std::mt19937 random(20260101);
  const std::string good =
      "allreduce  ranks 2-7  nodes 1  bytes 0-8K  doubling  piece 32K  depth 8  radix 2\n# why\r\n"
      "allreduce  bytes 64K-  ring\n";
  const std::string bytes = std::string("\0\n\r\t #-0129KMGkx\xEF\xBB\xBF\xFF", 20) + "ranks ring 18446744073709551615";
  int survived = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    for (unsigned change = 0; change <= random() % 4; ++change) {
      const size_t at = random() % (text.size() + 1);
      const size_t length = std::min<size_t>(random() % 6, text.size() - at);
      std::string other;
      for (unsigned i = 0; i < random() % 4; ++i) other += bytes[random() % bytes.size()];
      text.replace(at, length, other);
    }
    const ParsedTuning parsed = parse_tuning(text);
    if (!parsed.error.empty()) {
      unsigned line = 0, column = 0;
      ASSERT_EQ(std::sscanf(parsed.error.c_str(), "%u:%u: ", &line, &column), 2) << parsed.error;
      ASSERT_TRUE(line >= 1 && column >= 1 && column <= text.size() + 1) << parsed.error;
      continue;
    }
    ++survived;
    const std::string lines = lines_of(parsed.rows);
    const ParsedTuning again = parse_tuning(lines);
    ASSERT_EQ(again.error, "") << lines;
    ASSERT_EQ(lines_of(again.rows), lines);
  }
  EXPECT_GT(survived, 1000);  // that rows which parse are among them
}

}  // namespace
}  // namespace gpurdma
