#include "staging.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

namespace gpurdma {
namespace {

// Two GPUs, whose memory is the two halves of an array; work is done when it is looked for.
class TwoGpus final : public Gpus {
 public:
  GpuId place(const void* address) override {
    const auto* at = static_cast<const char*>(address);
    return at < memory || at >= memory + sizeof memory ? kHost : at < memory + sizeof memory / 2 ? 0 : 1;
  }
  bool enter(GpuId gpu, GpuInbox* inbox, GpuToken token, Status* status) override {
    entered += gpu == 0 ? "0" : "1";
    *status = enter_status;
    if (!busy || enter_status != Status::ok) return true;
    later.push_back({inbox, token, Status::ok, {}});
    return false;
  }
  bool reduces(GpuId, Op, Type) override { return false; }
  Status copy(GpuId, const GpuCopy& copy, GpuInbox* inbox, GpuToken token) override {
    if (--copies_until_refused == 0) return Status::gpu;
    later.push_back({inbox, token, copy_status, copy});
    return Status::ok;
  }
  Status reduce(GpuId, Op, Type, void*, const void*, const void*, size_t, GpuInbox*, GpuToken) override {
    return Status::unsupported;
  }
  void flush() override {}
  int progress() override {
    std::vector<Later> now;
    now.swap(later);
    for (const Later& l : now) {
      for (size_t row = 0; l.status == Status::ok && l.copy.dst && row < l.copy.rows; ++row)
        memcpy(static_cast<char*>(l.copy.dst) + row * l.copy.dst_pitch,
               static_cast<const char*>(l.copy.src) + row * l.copy.src_pitch, l.copy.width);
      l.inbox->worked(l.token, l.status);
    }
    return int(now.size());
  }
  void* take_pinned(size_t bytes) override {
    pinned += bytes;
    return std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  }
  void give_pinned(void* block, size_t bytes) override {
    pinned -= bytes;
    std::free(block);
  }
  void* take(GpuId, size_t) override { return nullptr; }
  void give(GpuId, void*, size_t) override {}
  void trim() override {}

  struct Later {
    GpuInbox* inbox;
    GpuToken token;
    Status status;
    GpuCopy copy;
  };
  std::vector<Later> later;
  std::string entered;
  bool busy = true;
  Status enter_status = Status::ok, copy_status = Status::ok;
  int copies_until_refused = 0;
  size_t pinned = 0;
  char memory[2000] = {};
};

struct StagingTest : ::testing::Test {
  // The status with which a job ended; -1: it has not, -2: it did not begin.
  int run(const std::vector<gpurdma_rows_t>& rows, bool entry = true) {
    int told = -1;
    const auto tell = [](void* cookie, int status) { *static_cast<int*>(cookie) = status; };
    began = staging.copy(rows.data(), rows.size(), entry, tell, &told);
    if (began != Status::ok) return -2;
    for (int i = 0; i < 10 && told == -1; ++i) {
      Staging::Ended ended;
      if (staging.take_ended(&ended)) ended.done(ended.cookie, int(ended.status));
      if (told != -1) break;
      gpus.progress();
    }
    return told;
  }

  TwoGpus gpus;
  Staging staging{&gpus, 1000};
  Status began = Status::ok;
  char host[2000] = {};
};

TEST_F(StagingTest, RowsAreCopiedOnceAllGpusAreReady) {
  for (size_t i = 0; i < sizeof gpus.memory; ++i) gpus.memory[i] = char(i % 100);
  EXPECT_EQ(run({{host, gpus.memory, 3, 5, 3, 10},
                 {host + 100, gpus.memory + 1500, 4, 1, 4, 4},
                 {host + 200, gpus.memory + 100, 1, 1, 1, 1}}),
            GPURDMA_OK);
  EXPECT_EQ(gpus.entered, "01");  // each once
  EXPECT_EQ(memcmp(host, "\0\1\2\12\13\14\24\25\26\36\37\40\50\51\52\0", 16), 0);
  EXPECT_EQ(memcmp(host + 100, gpus.memory + 1500, 4), 0);
  EXPECT_EQ(staging.active(), 0u);
}

TEST_F(StagingTest, NothingIsWaitedForLaterOn) {
  EXPECT_EQ(run({{gpus.memory, host, 10, 1, 10, 10}}, false), GPURDMA_OK);
  EXPECT_EQ(gpus.entered, "");
}

TEST_F(StagingTest, AnIdleGpuIsUsedAtOnce) {
  gpus.busy = false;
  EXPECT_EQ(run({{gpus.memory, host, 10, 1, 10, 10}}), GPURDMA_OK);
  EXPECT_EQ(gpus.entered, "0");
}

TEST_F(StagingTest, FailuresAreTold) {
  const gpurdma_rows_t row{gpus.memory, host, 10, 1, 10, 10};
  gpus.enter_status = Status::gpu;
  EXPECT_EQ(run({row}), GPURDMA_GPU);
  EXPECT_TRUE(gpus.later.empty());
  gpus.enter_status = Status::ok;
  gpus.copy_status = Status::gpu;
  EXPECT_EQ(run({row, row}), GPURDMA_GPU);
  gpus.copy_status = Status::ok;
  gpus.copies_until_refused = 2;  // what was asked for before ends first
  EXPECT_EQ(run({row, row, row}), GPURDMA_GPU);
  EXPECT_EQ(run({row}), GPURDMA_OK);
  EXPECT_EQ(staging.active(), 0u);
}

TEST_F(StagingTest, HostMemoryIsRefused) {
  EXPECT_EQ(run({{host, host + 10, 10, 1, 10, 10}}), -2);
  EXPECT_EQ(began, Status::invalid);
  EXPECT_EQ(staging.active(), 0u);
}

TEST_F(StagingTest, StandInsArePinnedUpToABound) {
  void* first = staging.take(600);
  void* second = staging.take(600);
  void* none = staging.take(0);
  EXPECT_EQ(gpus.pinned, 600u);
  EXPECT_TRUE(first && second && none);
  EXPECT_EQ(uintptr_t(second) % 64, 0u);
  staging.give(second, 600);
  staging.give(first, 600);
  staging.give(none, 0);
  EXPECT_EQ(gpus.pinned, 0u);
}

TEST_F(StagingTest, WithoutGpusAllIsHostMemory) {
  Staging alone(nullptr, 1000);
  EXPECT_FALSE(alone.on_device(host));
  void* block = alone.take(100);
  EXPECT_NE(block, nullptr);
  alone.give(block, 100);
  EXPECT_EQ(alone.copy(nullptr, 0, true, nullptr, nullptr), Status::unsupported);
}

}  // namespace
}  // namespace gpurdma
