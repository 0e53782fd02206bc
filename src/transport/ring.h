// Ring: ordered messages from one process to another through memory that both map.
//
// A message takes one cell: a cache line with its header, a flag, and its payload where that is small. A larger payload
// lies in the lane, a stretch of the receiver's memory lent to the sender; the cell says where. The sender writes
// payload and header, then the flag; the receiver looks at the next cell's flag, uses the payload where it lies, and
// then counts it as consumed, which frees cell and payload. Nobody waits: without room place() gives nullptr.
//
// Both ends count messages from 0. A cell's flag is the number of its message plus one, so nothing is ever cleared.
// Sender's and receiver's objects are private to their process; RingMemory is shared.
#pragma once
#include <atomic>
#include <cstring>

#include "transport/transport.h"

namespace gpurdma {

struct RingMemory {
  static constexpr uint32_t kCells = 32;
  static constexpr size_t kHere = 32;  // bytes of payload that a cell holds

  struct alignas(64) Cell {
    std::atomic<uint32_t> flag;
    uint32_t bytes;
    Header header;
    union {
      char here[kHere];
      uint64_t at;  // of the payload in the receiver's arena
    };
  };
  static_assert(sizeof(Cell) == 64, "one cache line");

  // The CPU fetches lines in pairs; what the receiver writes lies in a pair of its own.
  alignas(128) std::atomic<uint32_t> consumed;  // messages
  std::atomic<uint32_t> closed;                 // the sender will send nothing more
  alignas(128) Cell cells[kCells];
};

// A part of the receiver's arena that holds payloads.
struct Lane {
  char* base = nullptr;  // here
  size_t at = 0;         // in the arena
  size_t bytes = 0;
};

class RingSender {
 public:
  RingSender() = default;
  explicit RingSender(RingMemory* ring) : ring_(ring) {}

  // Lends a lane, or takes it back: only when drained.
  void lend(const Lane& lane) {
    lane_ = lane;
    head_ = tail_ = 0;
    for (uint64_t& end : end_) end = 0;
  }
  const Lane& lane() const { return lane_; }
  // Whether the receiver has consumed all that was sent.
  bool drained() { return look() == sent_; }
  uint32_t sent() const { return sent_; }

  // Where the payload of the next message goes: aligned to 32 bytes, or to cache lines beyond kHere; nullptr: no room
  // now. A message of up to half a lane finds room at the latest when all is consumed. To be followed by commit(), or
  // by nothing.
  char* place(size_t bytes) {
    if (sent_ - consumed_ == RingMemory::kCells && look() + RingMemory::kCells == sent_) return nullptr;
    if (bytes <= RingMemory::kHere) {
      place_ = head_;
      return cell().here;
    }
    const size_t size = (bytes + 63) & ~size_t(63);
    if (size > lane_.bytes) return nullptr;
    uint64_t begin = head_;
    if (begin % lane_.bytes + size > lane_.bytes) begin += lane_.bytes - begin % lane_.bytes;
    if (begin + size - tail_ > lane_.bytes) {
      look();
      if (begin + size - tail_ > lane_.bytes) return nullptr;
    }
    place_ = begin + size;
    at_ = begin % lane_.bytes;
    return lane_.base + at_;
  }
  // Sends what lies at the last place().
  void commit(const Header& header, size_t bytes) {
    RingMemory::Cell& c = cell();
    c.bytes = uint32_t(bytes);
    c.header = header;
    if (bytes > RingMemory::kHere) c.at = lane_.at + at_;
    end_[sent_ % RingMemory::kCells] = head_ = place_;
    c.flag.store(++sent_, std::memory_order_release);
  }

 private:
  RingMemory::Cell& cell() { return ring_->cells[sent_ % RingMemory::kCells]; }
  uint32_t look() {
    const uint32_t consumed = ring_->consumed.load(std::memory_order_acquire);
    if (consumed != consumed_) tail_ = end_[(consumed - 1) % RingMemory::kCells];
    return consumed_ = consumed;
  }

  RingMemory* ring_ = nullptr;
  uint32_t sent_ = 0, consumed_ = 0;  // messages; consumed as we last saw it
  Lane lane_;
  uint64_t head_ = 0, tail_ = 0;           // of the lane: bytes ever given out, and given back
  uint64_t place_ = 0;                     // head_ once the place given last is used
  size_t at_ = 0;                          // that place, in the lane
  uint64_t end_[RingMemory::kCells] = {};  // head_ after each message
};

class RingReceiver {
 public:
  // arena: where lanes lie; what a cell says is not trusted beyond it.
  RingReceiver(RingMemory* ring, const char* arena, size_t arena_bytes)
      : ring_(ring), arena_(arena), arena_bytes_(arena_bytes) {}

  // Hands over messages that have come, at most `most`; returns how many.
  template <class F>
  int poll(int most, F arrived) {
    int n = 0;
    for (; n < most; ++n) {
      if (!waiting()) break;
      const RingMemory::Cell& cell = ring_->cells[next_ % RingMemory::kCells];
      const size_t bytes = cell.bytes;
      const bool here = bytes <= RingMemory::kHere;
      if (here || (cell.at <= arena_bytes_ && bytes <= arena_bytes_ - cell.at))
        arrived(cell.header, here ? cell.here : arena_ + cell.at, bytes);
      ring_->consumed.store(++next_, std::memory_order_release);
    }
    return n;
  }

  // Whether there is a message that poll() would hand over.
  bool waiting() const {
    return ring_->cells[next_ % RingMemory::kCells].flag.load(std::memory_order_acquire) == next_ + 1;
  }

 private:
  RingMemory* ring_;
  const char* arena_;
  size_t arena_bytes_;
  uint32_t next_ = 0;  // message
};

}  // namespace gpurdma
