// Memory of ours: within its bounds, reused, given back.
#include "device/pool.h"
#include "rig.h"

namespace gpurdma::test {
namespace {

class Heap final : public PoolSource {
 public:
  ~Heap() { EXPECT_EQ(bytes, 0u); }
  void* allocate(size_t n) override {
    if (refuses) return nullptr;
    bytes += n;
    ++calls;
    return std::aligned_alloc(256, (n + 255) / 256 * 256);
  }
  void release(void* chunk, size_t n) override {
    bytes -= n;
    std::free(chunk);
  }
  size_t bytes = 0;
  int calls = 0;
  bool refuses = false;
};

TEST(DevicePool, BlocksAreApartAlignedAndReused) {
  Heap heap;
  Pool pool(heap, size_t(64) << 20);
  std::vector<std::pair<char*, size_t>> blocks;
  for (size_t bytes = 1; bytes < (size_t(4) << 20); bytes = bytes * 5 / 3 + 1) {
    for (int i = 0; i < 3; ++i) {
      auto* const block = static_cast<char*>(pool.take(bytes));
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 256, 0u);
      EXPECT_LT(Pool::block_bytes(bytes), bytes + bytes / 4 + 256);
      std::memset(block, int(blocks.size()), bytes);
      blocks.push_back({block, bytes});
    }
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(blocks[i].first[0], char(i));
    EXPECT_EQ(blocks[i].first[blocks[i].second - 1], char(i));
  }
  for (const auto& [block, bytes] : blocks) pool.give(block, bytes);
  EXPECT_EQ(pool.blocks_in_use(), 0u);
  const int calls = heap.calls;
  for (auto& [block, bytes] : blocks) block = static_cast<char*>(pool.take(bytes));
  EXPECT_EQ(heap.calls, calls);
  for (const auto& [block, bytes] : blocks) pool.give(block, bytes);
}

TEST(DevicePool, StaysWithinItsBoundAndTakesIdleChunksBackForIt) {
  Heap heap;
  constexpr size_t limit = size_t(8) << 20;
  Pool pool(heap, limit);
  EXPECT_EQ(pool.take(limit + 1), nullptr);
  void* const all = pool.take(limit);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(pool.take(1), nullptr);
  pool.give(all, limit);
  std::vector<void*> blocks;
  while (void* block = pool.take(100000)) blocks.push_back(block);
  EXPECT_GE(blocks.size() * Pool::block_bytes(100000), limit * 9 / 10);
  EXPECT_LE(heap.bytes, limit);
  for (void* block : blocks) pool.give(block, 100000);
  void* const again = pool.take(limit);
  EXPECT_NE(again, nullptr);
  pool.give(again, limit);
  heap.refuses = true;
  EXPECT_EQ(pool.take(limit / 2), nullptr);
}

TEST(DevicePool, TrimGivesBackWhatWasNotUsedSinceTheLastTime) {
  Heap heap;
  Pool pool(heap, size_t(64) << 20);
  void* const kept = pool.take(1000);
  pool.give(pool.take(1 << 20), 1 << 20);
  pool.trim();
  EXPECT_NE(pool.bytes(), 0u);
  const size_t with_both = pool.bytes();
  pool.trim();
  EXPECT_LT(pool.bytes(), with_both);
  EXPECT_NE(pool.bytes(), 0u);
  pool.give(kept, 1000);
  pool.trim();
  pool.trim();
  EXPECT_EQ(pool.bytes(), 0u);
}

TEST(DeviceMemory, BoundedTrimmedAndGivenBack) {
  const Device device;
  emu_counts before, now;
  emu_get_counts(&before);
  {
    GpuSettings settings;
    settings.pinned_bytes = size_t(8) << 20;
    settings.device_bytes = size_t(4) << 20;
    Rig rig(settings);
    const Buffer buffer(Buffer::Kind::device, 8);
    const GpuId gpu = rig.gpus->place(buffer.data());
    ASSERT_EQ(rig.enter(gpu), Status::ok);
    std::vector<void*> pinned, ours;
    while (void* block = rig.gpus->take_pinned(300000)) pinned.push_back(block);
    while (void* block = rig.gpus->take(gpu, 300000)) ours.push_back(block);
    EXPECT_GE(pinned.size(), 15u);
    EXPECT_GE(ours.size(), 10u);
    for (void* block : pinned) std::memset(block, 1, 300000);
    for (void* block : ours) EXPECT_EQ(rig.gpus->place(block), gpu);
    EXPECT_EQ(rig.gpus->place(pinned[0]), kHost);
    emu_get_counts(&now);
    EXPECT_LE(now.pinned.bytes - before.pinned.bytes, (size_t(8) << 20) + 4096);
    EXPECT_LE(now.memory.bytes - before.memory.bytes, (size_t(4) << 20) + 4096);
    for (void* block : pinned) rig.gpus->give_pinned(block, 300000);
    for (void* block : ours) rig.gpus->give(gpu, block, 300000);
    rig.gpus->trim();
    rig.gpus->trim();
    emu_get_counts(&now);
    EXPECT_LE(now.pinned.bytes - before.pinned.bytes, 4096u);
    EXPECT_LE(now.memory.bytes - before.memory.bytes, 4096u);
    EXPECT_EQ(rig.gpus->take_pinned(0), nullptr);
    EXPECT_EQ(rig.gpus->take(gpu, 0), nullptr);
  }
  emu_get_counts(&now);
  EXPECT_EQ(now.pinned.bytes, before.pinned.bytes);
  EXPECT_EQ(now.memory.bytes, before.memory.bytes);
}

}  // namespace
}  // namespace gpurdma::test
