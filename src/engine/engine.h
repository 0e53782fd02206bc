// Engine: runs any number of plans at once, on any number of communicators, from progress() and from wait().
//
// It owns communicators and runs, links ranks when a plan first needs them, gives every message to its run, and turns
// failures into statuses. Everything but the counters is called under lock(); completions are handed over after it was
// released:
//   engine.lock(); engine.begin(...); engine.progress(); auto done = engine.finished(); engine.unlock(); for each of
//   done: tell its owner.
// Nothing here waits, except wait().
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "base/counters.h"
#include "engine/lock.h"
#include "engine/mailbox.h"
#include "engine/memory.h"
#include "engine/run.h"

namespace gpurdma {

class Engine final : public Inbox, public GpuInbox, public Stager::Listener {
 public:
  struct Limits {
    double deadline_s = 0;       // 0: none
    double stall_warning_s = 0;  // 0: never
    size_t scratch = SIZE_MAX;   // most bytes of scratch at once, of host memory
    // For living peers to let go of what is in flight once a communicator was closed. A peer that only computes lets go
    // when it is in MPI again; closing the endpoint under it can end in an assertion of UCX there.
    double grace_s = 30;
  };
  // What the owner of the process offers. plan_released: a plan given to begin() is not used any more; called under the
  // lock.
  struct Host {
    void (*progress)(void* context) = nullptr;  // advances other communication; without the lock
    void (*plan_released)(void* context, const Plan& plan) = nullptr;
    void* context = nullptr;
  };
  struct Ended {
    void* cookie;
    Status status;
    int host_error;
  };

  // gpus: may be nullptr.
  Engine(Transport& transport, Counters& counters, const Limits& limits, const Host& host, Gpus* gpus = nullptr,
         const Placer::Rules& rules = Placer::Rules(), Stager::Direct direct = Stager::Direct::over_rdma);
  ~Engine();

  void lock() { lock_.lock(); }
  bool try_lock() { return lock_.try_lock(); }
  void unlock() { lock_.unlock(); }

  Communicator* new_communicator(int rank, int size, const char* name, const CommHooks& hooks);
  // No run on it may be active.
  void free_communicator(Communicator* comm);
  // Closes a communicator after a failure, tells the peers, and gives its runs up. They end when nothing is in flight
  // any more: peers that live let go of it when they are told, the others are abandoned, with all communicators that
  // they share with us. host_error: see CommHooks::broken.
  void close(Communicator& comm, Status why, int host_error = 0);

  // Decides where operands are worked on, and holds what that needs until the run that it is given to has ended.
  Placer& placer() { return placer_; }
  // Starts a plan as soon as its peers are linked. ticket.cookie == nullptr: the caller must wait() for the run.
  // Otherwise it will be among finished(), unless an error is returned. The plan is released when the run has ended,
  // also after an error, as is the binding's placement. Errors: no_memory, closed.
  Status begin(const Plan& plan, Communicator& comm, Number number, Binding binding, const Ticket& ticket, Run** run);
  // Progresses until the run is over, and recycles it. Holds the lock on entry and on return, not throughout.
  // host_error as in Ended.
  Status wait(Run& run, int* host_error);

  // Moves everything on; returns the number of events.
  int progress();
  // Takes the operations that ended, oldest first; at most `room`.
  int finished(Ended* ended, int room);
  size_t active() const { return active_count_; }       // begun and not over
  size_t unclaimed() const { return finished_count_; }  // over, and not yet taken by finished()
  size_t early_bytes() const {
    return early_.in_use();
  }  // of messages that wait for their run, or for their place in it
  size_t scratch_bytes() const { return scratch_.in_use(); }

  void arrived(const Header& header, const Payload& payload) override;
  void completed(Token token, Status status) override;
  void lost(PeerId peer) override;
  void worked(GpuToken token, Status status) override;
  void carried(Token token, Status status) override;

 private:
  static constexpr uint32_t kIndexBits = 20;  // of a communicator's handle; the rest counts reuses of the index

  struct List {
    Run* head = nullptr;
    Run* tail = nullptr;
    void push_back(Run& run);
    void remove(Run& run);
  };

  Communicator* find(uint32_t handle) const;
  void tell_closed(Communicator& comm);
  Run* take_run();
  void link_peers(Communicator& comm, const Plan& plan);
  static bool linked(const Run& run);
  void start_when_able(Run& run);
  int poll();
  void poll_links();
  void start(Run& run);
  void settle(Run& run);
  void count_placement(Run& run);
  void recycle(Run& run);
  void drop(const Payload& payload);
  void give_up(PeerId peer);
  void look_around();
  void tick();
  void check(Run& run, uint64_t now);

  Transport& transport_;
  Counters& counters_;
  const Limits limits_;
  const Host host_;
  Lock lock_;
  Memory scratch_, early_;
  Mailbox mailbox_;
  Gpus* const gpus_;
  Placer placer_;
  Stager stager_;
  const Run::Means means_;

  std::vector<std::unique_ptr<Communicator>> comms_;  // by index
  std::vector<uint32_t> reuses_;                      // by index
  std::vector<uint32_t> free_indices_;
  std::vector<Communicator*> greeting_;  // with Hellos under way
  std::deque<Run> runs_;                 // by slot
  List idle_, active_, finished_;
  size_t active_count_ = 0, finished_count_ = 0;
  uint64_t last_tick_ = 0, last_peer_check_ = 0;
  unsigned polls_ = 0;
};

}  // namespace gpurdma
