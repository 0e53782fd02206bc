#include "plan/blocks.h"

#include <gtest/gtest.h>

#include "plan/slots.h"

namespace gpurdma {
namespace {

TEST(Blocks, CoverTheVectorWithSizesThatDifferByAtMostOne) {
  for (size_t count : {0, 1, 2, 3, 7, 8, 9, 100, 1000003}) {
    for (int n = 1; n <= 33; ++n) {
      const Blocks blocks(5, count, n);
      size_t next = 5;
      for (int i = 0; i < n; ++i) {
        EXPECT_EQ(blocks.at(i), next);
        EXPECT_LE(blocks.size(i), blocks.largest());
        EXPECT_LE(blocks.largest(), blocks.size(i) + 1);
        next += blocks.size(i);
      }
      EXPECT_EQ(next, 5 + count);
      EXPECT_EQ(blocks.size(n + 2), 0u);
      EXPECT_EQ(blocks.at(n + 2), next);
    }
  }
}

TEST(Blocks, PiecesCoverABlockInOrder) {
  for (size_t piece : {size_t{1}, size_t{3}, size_t{10}, SIZE_MAX}) {
    size_t next = 7;
    for_pieces(7, 10, piece, [&](size_t at, size_t n) {
      EXPECT_EQ(at, next);
      EXPECT_TRUE(n > 0 && n <= piece);
      next += n;
    });
    EXPECT_EQ(next, 17u);
  }
  for_pieces(7, 0, 3, [](size_t, size_t) { FAIL(); });
}

TEST(Slots, AreUsedInTurnAndMadeWhenFirstUsed) {
  Plan plan(0, 2);
  Slots slots(plan, 10, 3);
  EXPECT_EQ(plan.scratch_elements(), 0u);
  EXPECT_EQ(slots.next(4).at, 0u);
  plan.scratch(100);  // slots need not lie side by side
  EXPECT_EQ(slots.next(10).at, 110u);
  EXPECT_EQ(slots.next(10).at, 120u);
  const Slice again = slots.next(1);
  EXPECT_EQ(again.at, 0u);
  EXPECT_EQ(again.n, 1u);
  EXPECT_EQ(slots.next(1).at, 110u);
  EXPECT_EQ(plan.scratch_elements(), 130u);
}

}  // namespace
}  // namespace gpurdma
