// Arena: the memory of one process that others on its node write their messages into.
//
// Made once per process and of fixed size, however many communicators there are: a header, one ring for each process
// that sends to us, and lanes for payloads. Rings and lanes are claimed by the senders; a lane that is not used goes
// back, so that a node with many processes needs few. It is a memfd: it has no name that could be left behind, and goes
// with its last user, however that ends. Its pages are taken when it is made, by its owner: near it, and never missing
// later. Children that fork do not inherit the mapping.
#pragma once
#include <atomic>
#include <vector>

#include "base/span.h"
#include "base/status.h"
#include "transport/process.h"
#include "transport/ring.h"

namespace gpurdma {

// Where the arena is to be found: travels in an address.
struct ArenaName {
  int32_t fd;  // of its owner; -1: there is none
  uint32_t reserved;
  uint64_t bytes;
};

// The start of the memory.
struct ArenaHeader {
  static constexpr uint32_t kRings = 127, kMostLanes = 255;
  static constexpr size_t kLane = 248 * 1024;  // bytes; seven of them and the rings fill 2 MiB

  uint64_t magic;
  uint64_t owner;  // ProcessIdentity::unique
  uint32_t lanes;
  alignas(64) std::atomic<uint32_t> rings_used;           // rings from this one on were never claimed
  alignas(64) std::atomic<uint64_t> ring_sender[kRings];  // unique, 0: free
  std::atomic<uint32_t> lane_ring[kMostLanes];            // 1 + ring, 0: free
};

// A mapping of an arena. Move-only.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping();
  Mapping(Mapping&& other) noexcept { *this = static_cast<Mapping&&>(other); }
  Mapping& operator=(Mapping&& other) noexcept;
  bool map(int fd, size_t bytes);

  explicit operator bool() const { return base_ != nullptr; }
  ArenaHeader& header() const { return *reinterpret_cast<ArenaHeader*>(base_); }
  RingMemory& ring(uint32_t index) const;
  Lane lane(uint32_t index) const;
  char* base() const { return base_; }
  size_t bytes() const { return bytes_; }

 private:
  char* base_ = nullptr;
  size_t bytes_ = 0;
};

// The owner's side.
class Arena {
 public:
  static constexpr size_t kLeast = 1024 * 1024, kMost = 64 * 1024 * 1024;  // bytes

  ~Arena();
  // Errors: unsupported, where the system gives no such memory; says why. bytes: at least kLeast.
  Status create(size_t bytes, const ProcessIdentity& own);
  ArenaName name() const { return {fd_, 0, mapping_.bytes()}; }

  // Calls arrived(cell, payload, sender) for what has come, from all senders; returns how many messages. Looks at a few
  // rings at a time.
  template <class F>
  int poll(F arrived) {
    const uint32_t used = rings_used();
    if (used != receivers_.size()) meet(used);
    int n = 0;
    for (uint32_t i = 0, most = used < kRingsPerPoll ? used : kRingsPerPoll; i < most; ++i) {
      if (++turn_ >= used) turn_ = 0;
      n += receivers_[turn_].poll(kMessagesPerPoll, [&](const RingMemory::Cell& cell, const char* payload) {
        arrived(cell, payload, sender_of(turn_));
      });
    }
    return n;
  }
  // Whether that process has a ring here, and says in it that it may read our memory.
  bool is_read_by(uint64_t sender) const;
  // Of that process's ring; closed where it has none.
  RingMemory::State state_of(uint64_t sender) const;
  // Takes back rings and lanes of senders that closed theirs, or that is dead (0: none is).
  void reclaim(uint64_t dead_sender);

 private:
  static constexpr uint32_t kRingsPerPoll = 8;
  static constexpr int kMessagesPerPoll = 8;

  uint32_t rings_used() const {
    const uint32_t used = mapping_ ? mapping_.header().rings_used.load(std::memory_order_acquire) : 0;
    return used < ArenaHeader::kRings ? used : ArenaHeader::kRings;
  }
  void meet(uint32_t rings);
  const RingMemory* ring_of(uint64_t sender) const;
  uint64_t sender_of(uint32_t ring) const {
    return mapping_.header().ring_sender[ring].load(std::memory_order_acquire);
  }

  Mapping mapping_;
  int fd_ = -1;
  uint32_t turn_ = 0;
  std::vector<RingReceiver> receivers_;  // by ring
};

// A sender's side: its ring in the arena of another process. Move-only.
class PeerArena {
 public:
  PeerArena() = default;
  ~PeerArena();
  PeerArena(PeerArena&& other) noexcept { *this = static_cast<PeerArena&&>(other); }
  PeerArena& operator=(PeerArena&& other) noexcept;

  // Maps the peer's arena and claims a ring there. Returns why that is not possible, or nullptr.
  const char* open(const ArenaName& name, const ProcessIdentity& peer, const ProcessIdentity& own);
  bool is_open() const { return bool(mapping_); }
  // Ends it: what is on offer must not be taken any more, nor what was taken be used, unless that is known by now. When
  // this returns, memory that was on offer may be used again.
  void give_up();

  // Most bytes of one message; what is larger would stop the pipeline.
  static constexpr size_t kLargest = ArenaHeader::kLane / 2;
  // As RingSender's; claims a lane where one is needed.
  char* place(size_t bytes) { return takes(bytes) ? sender_.place(bytes) : nullptr; }
  void commit(const Header& header, size_t bytes) { sender_.commit(header, bytes); }
  bool send(const Header& header, size_t bytes, RingMemory::Form form, const RingMemory::Offer& offer) {
    return sender_.send(header, bytes, form, offer);
  }
  // Tells the peer that we may read its memory.
  void tell_reading() { mapping_.ring(ring_).sender_reads.store(1, std::memory_order_release); }
  // Whether a message of that size can go here at all: it is not too large, and there is a lane if it needs one.
  bool takes(size_t bytes) {
    return bytes <= RingMemory::kHere || (bytes <= kLargest && (sender_.lane().base || claim_lane()));
  }
  // Gives a lane back that carried nothing since the last call; nothing to do where none is held.
  void rest();

 private:
  bool claim_lane();

  Mapping mapping_;
  uint32_t ring_ = 0, lane_ = 0, sent_at_rest_ = 0;
  RingSender sender_;
};

}  // namespace gpurdma
