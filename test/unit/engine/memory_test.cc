#include "engine/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace gpurdma {
namespace {

TEST(Memory, BlocksAreAlignedAndLargeEnough) {
  Memory memory(SIZE_MAX);
  std::vector<std::pair<void*, size_t>> blocks;
  for (size_t bytes : {1, 64, 255, 256, 257, 4096, 4097, 1000003}) {
    void* block = memory.take(bytes);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
    std::memset(block, 1, bytes);
    blocks.push_back({block, bytes});
  }
  EXPECT_GT(memory.in_use(), 1000003u);
  for (auto& [block, bytes] : blocks) memory.give(block, bytes);
  EXPECT_EQ(memory.in_use(), 0u);
}

TEST(Memory, NothingIsNothing) {
  Memory memory(0);
  EXPECT_EQ(memory.take(0), nullptr);
  memory.give(nullptr, 0);
  EXPECT_EQ(memory.in_use(), 0u);
}

TEST(Memory, GivesKeptBlocksAgain) {
  Memory memory(4096);
  void* block = memory.take(1000);
  memory.give(block, 1000);
  EXPECT_EQ(memory.kept(), 1024u);
  EXPECT_EQ(memory.take(513), block);  // the same size of block
  EXPECT_EQ(memory.kept(), 0u);
  memory.give(block, 513);
}

TEST(Memory, KeepsNoMoreThanItMay) {
  Memory memory(2048);
  void* blocks[4];
  for (void*& block : blocks) block = memory.take(1024);
  for (void* block : blocks) memory.give(block, 1024);
  EXPECT_EQ(memory.kept(), 2048u);
  void* large = memory.take(5000);
  memory.give(large, 5000);
  EXPECT_EQ(memory.kept(), 2048u);
}

TEST(Memory, FailsBeyondItsLimit) {
  Memory memory(SIZE_MAX, 4096);
  void* first = memory.take(2048);
  void* second = memory.take(2048);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(memory.take(1), nullptr);
  memory.give(first, 2048);
  void* third = memory.take(1);
  EXPECT_NE(third, nullptr);
  memory.give(second, 2048);
  memory.give(third, 1);
  EXPECT_EQ(memory.take(SIZE_MAX), nullptr);
  EXPECT_EQ(memory.take(SIZE_MAX / 2), nullptr);
}

}  // namespace
}  // namespace gpurdma
