#include "coll/selection.h"

#include <gtest/gtest.h>

namespace gpurdma {
namespace {

constexpr Collective kAllreduce = Collective::allreduce;

TEST(Catalogue, NamesAreFoundAndUnique) {
  for (const Algorithm& algorithm : catalogue()) {
    EXPECT_EQ(find_algorithm(algorithm.collective, algorithm.name), &algorithm);
    EXPECT_NE(algorithm.build, nullptr);
    EXPECT_NE(algorithm.cost, nullptr);
  }
  EXPECT_EQ(find_algorithm(kAllreduce, "rings"), nullptr);
  EXPECT_STREQ(algorithm_names(kAllreduce), "doubling, ring");
}

TEST(Selection, TableIsWellFormed) {
  bool fits_all[kCollectives] = {};
  for (const TuningRow& row : builtin_tuning()) {
    EXPECT_NE(find_algorithm(row.collective, row.algorithm), nullptr) << row.algorithm;
    EXPECT_GE(row.piece, 1u);
    EXPECT_GE(row.depth, 1);
    fits_all[static_cast<int>(row.collective)] |=
        row.ranks_from <= 1 && row.ranks_to == kNoRankLimit && row.bytes_from == 0 && row.bytes_to == kNoByteLimit;
  }
  for (bool fits : fits_all) EXPECT_TRUE(fits);
}

TEST(Selection, SmallVectorsDoubleAndLargeOnesGoRound) {
  EXPECT_STREQ(select(kAllreduce, 2, 8, 4, {}).algorithm->name, "doubling");
  EXPECT_STREQ(select(kAllreduce, 2, 64 << 20, 4, {}).algorithm->name, "ring");
  EXPECT_STREQ(select(kAllreduce, 1024, 256 << 10, 4, {}).algorithm->name, "doubling");
  for (int ranks : {1, 2, 5, 1000, 100000}) EXPECT_NE(select(kAllreduce, ranks, SIZE_MAX, 1, {}).algorithm, nullptr);
}

TEST(Selection, PiecesAreElementsAndNeverEmpty) {
  EXPECT_EQ(select(kAllreduce, 2, 1 << 20, 8, {nullptr, 4096, 0}).tuning.piece, 512u);
  EXPECT_EQ(select(kAllreduce, 2, 1 << 20, 32, {nullptr, 5, 0}).tuning.piece, 1u);
}

TEST(Selection, EachPartIsForcedByItself) {
  const Choice table = select(kAllreduce, 4, 1 << 20, 4, {});
  const Algorithm* doubling = find_algorithm(kAllreduce, "doubling");
  const Choice forced = select(kAllreduce, 4, 1 << 20, 4, {doubling, 0, 0});
  EXPECT_EQ(forced.algorithm, doubling);
  EXPECT_EQ(forced.tuning.piece, table.tuning.piece);
  EXPECT_EQ(select(kAllreduce, 4, 1 << 20, 4, {nullptr, 0, 3}).tuning.depth, 3);
  EXPECT_EQ(select(kAllreduce, 4, 1 << 20, 4, {nullptr, 0, 3}).algorithm, table.algorithm);
}

TEST(Selection, PlansStayBounded) {
  const size_t bytes = size_t{1} << 40;
  const Choice choice = select(kAllreduce, 2, bytes, 4, {nullptr, 4, 1});
  EXPECT_LE(bytes / 4 / choice.tuning.piece, kMostPieces);
}

TEST(Selection, RowsAreWrittenAsLines) {
  EXPECT_EQ(to_line({kAllreduce, 2, 7, 0, 8192, "doubling", 32768, 8}),
            "allreduce  ranks 2-7  bytes 0-8K  doubling  piece 32K  depth 8");
  EXPECT_EQ(to_line({kAllreduce, 8, kNoRankLimit, 1 << 20, kNoByteLimit, "ring", 1000, 1}),
            "allreduce  ranks 8-  bytes 1M-  ring  piece 1000  depth 1");
}

}  // namespace
}  // namespace gpurdma
