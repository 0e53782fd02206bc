// Single copy: a process of this node copies a payload straight out of the sender's memory (process_vm_readv), where
// the system allows it.
//
// The sender offers address and length in a message, and its memory stays in use until the receiver says that it has
// taken the payload. This class keeps both sides' books: payloads of ours that peers may copy, and payloads of peers
// that we may copy. Nothing is mapped, nothing is kept between messages. Not thread-safe.
#pragma once
#include <deque>
#include <vector>

#include "transport/ring.h"

namespace gpurdma {

class SingleCopy {
 public:
  // ---- sender ----

  // Enters a payload that is offered to the peer; returns its id. token: of the send.
  uint32_t enter(PeerId peer, Token token);
  // The peer has taken it: forgets it and returns the token, or kNoToken where that peer was offered nothing such.
  Token leave(uint32_t id, PeerId peer);
  // Forgets one payload that was offered to the peer; kNoToken: there is none.
  Token leave_any(PeerId peer);

  // ---- receiver ----

  struct Taking {
    PeerId peer;
    RingMemory::Offer offer;
    Taking* next;  // among those that are free
  };
  // What the engine gets as Payload::offer. Never equal to an offer of UCX's, which are aligned.
  void* keep(PeerId peer, const RingMemory::Offer& offer);
  // nullptr: the offer is UCX's.
  static Taking* taking(void* offer) {
    const auto bits = reinterpret_cast<uintptr_t>(offer);
    return bits & 1 ? reinterpret_cast<Taking*>(bits - 1) : nullptr;
  }
  void drop(Taking* taking);

  // Copies from the memory of another process; returns errno, or 0.
  static int read(uint32_t pid, uint64_t address, void* into, size_t bytes);

 private:
  struct Entry {
    PeerId peer;
    Token token;  // kNoToken: free
  };
  std::vector<Entry> entries_;  // by id
  std::vector<uint32_t> free_entries_;
  std::deque<Taking> takings_;
  Taking* free_takings_ = nullptr;
};

}  // namespace gpurdma
