#include "coll/selection.h"

#include <gtest/gtest.h>

#include <string>

#include "coll/tuning_file.h"

namespace gpurdma {
namespace {

constexpr Collective kAllreduce = Collective::allreduce;

const Algorithm* named(const char* name) { return find_algorithm(kAllreduce, name); }

Choice choose(int ranks, size_t bytes, size_t element_bytes, const Forced& forced = {}) {
  return select(builtin_tuning(), {kAllreduce, ranks, 1, bytes, element_bytes}, forced);
}

Choice choose_by(const char* rows, int ranks, int nodes, size_t bytes) {
  const ParsedTuning parsed = parse_tuning(rows);
  EXPECT_EQ(parsed.error, "");
  const std::vector<TuningRow> table = before_builtin(parsed.rows);
  return select({table.data(), table.size()}, {kAllreduce, ranks, nodes, bytes, 1}, {});
}

TEST(Catalogue, NamesAreFoundAndUnique) {
  std::string names;
  for (const Algorithm& algorithm : catalogue()) {
    EXPECT_EQ(find_algorithm(algorithm.collective, algorithm.name), &algorithm);
    EXPECT_NE(algorithm.build, nullptr);
    EXPECT_NE(algorithm.cost, nullptr);
    names += std::string(names.empty() ? "" : ", ") + algorithm.name;
  }
  EXPECT_EQ(named("rings"), nullptr);
  EXPECT_EQ(algorithm_names(kAllreduce), names);
}

TEST(Selection, BuiltinTableParsesAndFitsEverything) {
  ASSERT_FALSE(builtin_tuning().empty());
  const TuningRow* last[kCollectives] = {};
  for (const TuningRow& row : builtin_tuning()) last[static_cast<int>(row.collective)] = &row;
  for (const TuningRow* row : last) {
    ASSERT_NE(row, nullptr);
    for (const int ranks : {1, 2, 3, 1000, 100000}) {
      EXPECT_TRUE(row->ranks.holds(size_t(ranks)) && row->nodes.holds(size_t(ranks)) && row->algorithm->takes(ranks));
    }
    EXPECT_TRUE(row->bytes.holds(0) && row->bytes.holds(SIZE_MAX));
  }
}

TEST(Selection, SmallVectorsDoubleAndLargeOnesGoRound) {
  EXPECT_STREQ(choose(2, 8, 4).algorithm->name, "doubling");
  EXPECT_STREQ(choose(2, 64 << 20, 4).algorithm->name, "ring");
  EXPECT_STREQ(choose(1024, 256 << 10, 4).algorithm->name, "doubling");
  for (int ranks : {1, 2, 5, 1000, 100000}) EXPECT_NE(choose(ranks, SIZE_MAX, 1).algorithm, nullptr);
}

TEST(Selection, TheFirstRowThatFitsApplies) {
  const char* rows =
      "allreduce ranks 2-4 nodes 2 bytes 100-200 ring piece 7 depth 3 radix 5\n"
      "allreduce ranks 2-4 bytes 0-200 ring piece 9\n";
  EXPECT_EQ(choose_by(rows, 4, 2, 100).tuning.piece, 7u);
  EXPECT_EQ(choose_by(rows, 4, 2, 100).tuning.depth, 3);
  EXPECT_EQ(choose_by(rows, 4, 2, 100).tuning.radix, 5);
  EXPECT_EQ(choose_by(rows, 4, 2, 200).tuning.piece, 7u);
  EXPECT_EQ(choose_by(rows, 4, 2, 99).tuning.piece, 9u);
  EXPECT_EQ(choose_by(rows, 4, 1, 100).tuning.piece, 9u);
  EXPECT_EQ(choose_by(rows, 4, 1, 201).tuning.piece, choose(4, 201, 1).tuning.piece);
  EXPECT_EQ(choose_by(rows, 5, 2, 100).algorithm, named("leaders"));
}

TEST(Selection, RowsForGpusAreForThose) {
  const std::vector<TuningRow> table = before_builtin(parse_tuning("allreduce gpus 2- ring piece 7").rows);
  const Span<const TuningRow> rows(table.data(), table.size());
  EXPECT_EQ(select(rows, {kAllreduce, 4, 1, 1000, 1, 4}, {}).tuning.piece, 7u);
  EXPECT_NE(select(rows, {kAllreduce, 4, 1, 1000, 1, 1}, {}).tuning.piece, 7u);
  // The built-in table cuts large vectors into larger pieces where there are GPUs.
  EXPECT_GT(select(builtin_tuning(), {kAllreduce, 4, 1, 64 << 20, 1, 1}, {}).tuning.piece,
            select(builtin_tuning(), {kAllreduce, 4, 1, 64 << 20, 1, 0}, {}).tuning.piece);
}

TEST(Selection, AnAlgorithmThatCannotRunIsPassedOver) {
  Algorithm few = *named("ring");
  few.limits.most_ranks = 3;
  TuningRow row;
  row.algorithm = &few;
  row.piece = 7;
  const std::vector<TuningRow> table = before_builtin({row});
  const Span<const TuningRow> rows(table.data(), table.size());
  EXPECT_EQ(select(rows, {kAllreduce, 3, 1, 1000, 1}, {}).tuning.piece, 7u);
  EXPECT_EQ(select(rows, {kAllreduce, 4, 1, 1000, 1}, {}).algorithm, choose(4, 1000, 1).algorithm);
  const Forced forced{&few, 0, 0, 0};
  EXPECT_EQ(choose(3, 8, 4, forced).algorithm, &few);
  EXPECT_EQ(choose(4, 8, 4, forced).algorithm, choose(4, 8, 4).algorithm);
}

TEST(Selection, PiecesAreElementsAndNeverEmpty) {
  EXPECT_EQ(choose(2, 1 << 20, 8, {nullptr, 4096, 0, 0}).tuning.piece, 512u);
  EXPECT_EQ(choose(2, 1 << 20, 32, {nullptr, 5, 0, 0}).tuning.piece, 1u);
}

TEST(Selection, EachPartIsForcedByItself) {
  const Choice table = choose(4, 1 << 20, 4);
  const Choice algorithm = choose(4, 1 << 20, 4, {named("doubling"), 0, 0, 0});
  EXPECT_EQ(algorithm.algorithm, named("doubling"));
  EXPECT_EQ(algorithm.tuning.piece, table.tuning.piece);
  EXPECT_EQ(choose(4, 1 << 20, 4, {nullptr, 0, 3, 0}).tuning.depth, 3);
  EXPECT_EQ(choose(4, 1 << 20, 4, {nullptr, 0, 3, 0}).algorithm, table.algorithm);
  EXPECT_EQ(choose(4, 1 << 20, 4, {nullptr, 0, 0, 7}).tuning.radix, 7);
  EXPECT_EQ(choose(4, 1 << 20, 4, {nullptr, 0, 0, 7}).tuning.depth, table.tuning.depth);
}

TEST(Selection, PlansStayBounded) {
  const size_t bytes = size_t{1} << 40;
  const Choice choice = choose(2, bytes, 4, {nullptr, 4, 1, 0});
  EXPECT_LE(bytes / 4 / choice.tuning.piece, kMostPieces);
}

}  // namespace
}  // namespace gpurdma
