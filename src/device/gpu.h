// Gpu: what gpurdma has in one context: streams, memory, kernels, and the work that is under way there.
//
// Opened when it is first used, and again after the application has reset its device. A failure that the driver never
// recovers from ("sticky") makes it unusable, which is said once. One thread at a time.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/status.h"
#include "device/contexts.h"
#include "device/gpus.h"
#include "device/pool.h"
#include "device/reductions.h"
#include "device/stream.h"

namespace gpurdma {

// Something that was asked for and has ended, for GpuInbox::worked().
struct EndedWork {
  GpuInbox* inbox;
  GpuToken token;
  Status status;
};

class Gpu final : private PoolSource {
 public:
  enum StreamName { down, up, across, compute, gate };
  static constexpr int kStreams = 5;

  Gpu(const Driver& driver, const Contexts::Context& context, size_t device_bytes)
      : driver_(driver), context_(context), memory_(*this, device_bytes) {}
  ~Gpu() { close(); }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  // Makes what it needs, unless that is there already. Logs what fails.
  Status open(bool kernels);
  // After the application has reset the device, what was made there is gone: forgets it, so that open() makes it anew,
  // and returns true. Work that was under way ends as failed.
  bool notice_reset(std::vector<EndedWork>* ended);
  bool usable() const { return open_ && !broken_; }
  // ... and so is its context. Asks the driver.
  bool lives() const { return usable() && !was_reset(); }

  CUcontext context() const { return context_.handle; }
  const Driver& driver() const { return driver_; }
  Stream& stream(StreamName name) { return streams_[name]; }
  Reductions& reductions() { return reductions_; }
  Pool& memory() { return memory_; }

  // worked(token) follows once the work that was submitted to that stream so far has ended.
  void follow(StreamName name, GpuInbox* inbox, GpuToken token) {
    waiting_[name].push_back({streams_[name].ticket(), inbox, token});
  }
  // Launches what reductions() has gathered and marks all streams. Enters the context where there is something to do.
  void flush(std::vector<EndedWork>* ended);
  bool busy() const;
  // Collects what has ended. false: the GPU failed, and nothing is under way there any more.
  bool poll(std::vector<EndedWork>* ended);

  // Submits to the gate's stream that it waits for what the application has queued on the legacy default stream. *done:
  // nothing is queued, or the stream cannot be used now; nothing was submitted.
  Status begin_gate(bool* done);
  // Waits for all that is under way, which then counts as ended, however it did.
  void quiesce();

  // Says that `what` failed, once for a GPU that is lost by it, and returns the status to hand on.
  [[gnu::format(printf, 3, 4)]] Status failed(CUresult result, const char* what, ...);
  const char* name() const { return name_; }

 private:
  struct Waiting {
    uint32_t ticket;
    GpuInbox* inbox;
    GpuToken token;
  };

  void* allocate(size_t bytes) override;
  void release(void* chunk, size_t bytes) override;
  CUresult open_streams();
  void close();
  void close_in(CUresult entered);
  bool was_reset() const;
  void fail_all(std::vector<EndedWork>* ended);

  const Driver& driver_;
  const Contexts::Context context_;
  char name_[96] = "";
  bool open_ = false, broken_ = false;
  bool forgets_memory_ = false;                       // it went with the context
  static constexpr unsigned long long kNoId = ~0ull;  // the driver does not tell
  unsigned long long context_id_ = kNoId;
  void* words_ = nullptr;     // pinned; one for each stream
  CUevent queued_ = nullptr;  // on the default stream
  uint64_t next_check_ns_ = 0;
  Stream streams_[kStreams];
  std::deque<Waiting> waiting_[kStreams];
  Reductions reductions_;
  Pool memory_;
};

}  // namespace gpurdma
