// GPUs of a rank in the simulator. Their memory lies at addresses that the CPU cannot use, a bit away from where it
// really is; copies and reductions are done when the network's clock says so, in any order, and told of later still.
// A type is the number of an element of element.h, whatever the op. What is wrong with their use is a complaint of the
// network's: memory that is no GPU's, host memory that is not pinned where it must be, memory that was given back.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "device/gpus.h"
#include "test/sim/network.h"

namespace gpurdma::sim {

class FakeGpus final : public Gpus {
 public:
  static constexpr int kGpus = 2;

  struct Behaviour {
    unsigned busy_stream = 30;  // percent of calls that find work on the default stream
    unsigned kernels = 80;      // percent of op and type that it can reduce; drawn once for each
    unsigned short_memory = 0;  // percent of requests for memory that find none
    unsigned errors = 0;        // percent of work that fails
    uint64_t longest_work = 1;  // ticks
  };

  FakeGpus(Network& network, int rank, const Behaviour& behaviour, uint64_t seed);

  // Makes memory of the application that GPU's until disown(); returns the address by which it is known from then on.
  void* adopt(GpuId gpu, void* memory, size_t bytes);
  void disown(void* address);

  GpuId place(const void* address) override;
  bool enter(GpuId gpu, GpuInbox* inbox, GpuToken token, Status* status) override;
  bool reduces(GpuId gpu, Op op, Type type) override;
  Status copy(GpuId gpu, const GpuCopy& copy, GpuInbox* inbox, GpuToken token) override;
  Status reduce(GpuId gpu, Op op, Type type, void* dst, const void* left, const void* right, size_t count,
                GpuInbox* inbox, GpuToken token) override;
  void flush() override;
  int progress() override;
  void* take_pinned(size_t bytes) override;
  void give_pinned(void* block, size_t bytes) override;
  void* take(GpuId gpu, size_t bytes) override;
  void give(GpuId gpu, void* block, size_t bytes) override;
  void trim() override {}

  // Work that has not been told of.
  size_t open() const { return open_; }
  // Blocks of ours that were not given back.
  size_t held() const { return held_; }

 private:
  struct Block {
    std::unique_ptr<char[]> memory;  // of ours
    size_t bytes;
    GpuId gpu;  // kHost: pinned
    bool ours;
  };
  struct Ended {
    GpuInbox* inbox;
    GpuToken token;
    Status status;
  };

  void* make(GpuId gpu, size_t bytes);
  void drop(void* address, GpuId gpu, size_t bytes);
  const Block* find(const void* address, size_t bytes) const;
  void* usable(GpuId gpu, const void* address, size_t bytes, bool any_host);
  Status later(GpuInbox* inbox, GpuToken token, std::function<void()> work);

  Network& network_;
  const int rank_;
  const Behaviour behaviour_;
  Random random_;
  const uint64_t seed_;
  std::map<uintptr_t, Block> blocks_;             // by the address that is known outside
  std::vector<std::function<void()>> kept_back_;  // until flush()
  std::vector<Ended> ended_;
  size_t open_ = 0, held_ = 0;
};

}  // namespace gpurdma::sim
