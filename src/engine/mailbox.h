// Mailbox: finds the run that a message belongs to, and keeps what comes before its run has started.
//
// Keyed by our handle of the communicator and the operation's number. What is kept is small: bulk data needs a credit,
// which only a started run grants; it is copied aside, so nothing of the transport's is held. Not thread-safe.
#pragma once
#include "engine/memory.h"
#include "engine/run.h"

namespace gpurdma {

class Mailbox {
 public:
  explicit Mailbox(Memory& memory) : memory_(memory) {}
  ~Mailbox();

  void add(Run& run) {
    Run*& head = runs_[bucket(run.comm().handle, run.number().bits())];
    run.next_in_mailbox = head;
    head = &run;
  }
  void remove(Run& run) {
    Run** at = &runs_[bucket(run.comm().handle, run.number().bits())];
    while (*at && *at != &run) at = &(*at)->next_in_mailbox;
    if (*at) *at = run.next_in_mailbox;
  }
  Run* find(uint32_t comm, uint64_t operation) const {
    for (Run* run = runs_[bucket(comm, operation)]; run; run = run->next_in_mailbox)
      if (run->number().bits() == operation && run->comm().handle == comm) return run;
    return nullptr;
  }

  // A copy of the message, for the caller to keep; nullptr when memory ran out.
  Parked* copy(const Header& header, const Payload& payload);
  void free(Parked* parked);

  // Keeps a message for a run that has not started.
  void keep(Parked* parked);
  // Takes what was kept for an operation, in order of arrival, linked by next.
  Parked* collect(uint32_t comm, uint64_t operation);
  // Takes what was kept for a communicator.
  Parked* collect(uint32_t comm);

 private:
  static constexpr size_t kBuckets = 512;
  static size_t bucket(uint32_t comm, uint64_t operation) {
    return size_t((operation ^ operation >> 32 ^ uint64_t(comm) * 0x9E3779B97F4A7C15u >> 40) % kBuckets);
  }

  Memory& memory_;
  Run* runs_[kBuckets] = {};
  Parked* kept_[kBuckets] = {};  // the latest first
  size_t kept_count_ = 0;
};

}  // namespace gpurdma
