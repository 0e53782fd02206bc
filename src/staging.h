// Staging: copies between device memory and host memory that stands in for it, for collectives that the component
// beneath runs.
//
// A job is the copies of one call of gpurdma_copy. It enters the GPUs that it concerns, where that is asked for,
// copies, and has ended when nothing of it is under way any more. All functions are called under the engine's lock;
// take_ended() hands over what is to be told once the lock is released.
#pragma once
#include <deque>
#include <unordered_set>
#include <vector>

#include "device/gpus.h"
#include "gpurdma.h"

namespace gpurdma {

class Staging final : public GpuInbox {
 public:
  struct Ended {
    void (*done)(void* cookie, int status);
    void* cookie;
    Status status;
  };

  // gpus: may be nullptr. pinned: most bytes of pinned memory that stand in for device memory; the rest is pageable.
  Staging(Gpus* gpus, size_t pinned) : gpus_(gpus), most_pinned_(pinned) {}

  bool on_device(const void* address) { return gpus_ && gpus_->place(address) != kHost; }

  void* take(size_t bytes);
  void give(void* block, size_t bytes);

  // As gpurdma_copy.
  Status copy(const gpurdma_rows_t* rows, size_t n, bool entry, void (*done)(void*, int), void* cookie);
  size_t active() const { return active_; }  // jobs that were begun and not taken
  bool take_ended(Ended* ended);

  void worked(GpuToken token, Status status) override;

 private:
  struct Row {
    GpuId gpu;
    GpuCopy copy;
  };
  struct Job {
    std::vector<Row> rows;  // until they are asked for
    size_t open;            // things under way
    Ended ended;
  };

  Job& new_job(size_t* slot);
  bool add(Job& job, const gpurdma_rows_t& rows);
  void enter(size_t slot);
  void ask(size_t slot);

  Gpus* const gpus_;
  const size_t most_pinned_;
  size_t pinned_ = 0;
  std::unordered_set<const void*> pageable_;  // stand-ins for which there was no pinned memory
  std::deque<Job> jobs_;                      // by slot
  std::vector<size_t> free_, ended_;          // slots
  size_t active_ = 0;
};

}  // namespace gpurdma
