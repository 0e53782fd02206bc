// Ring: ordered messages from one process to another through memory that both map.
//
// A message takes one cell: a flag, its header, and its payload where that is small, in one cache line, or in the line
// next to it, which the CPU fetches along with the first. A larger payload lies in the lane, a stretch of the
// receiver's memory lent to the sender; the cell says where. The sender writes
// payload and header, then the flag; the receiver looks at the next cell's flag, uses the payload where it lies, and
// then counts it as consumed, which frees cell and payload. Nobody waits: without room place() gives nullptr.
//
// Where the receiver may read the sender's memory, a large payload need not be copied into the lane: the message offers
// it, the receiver copies it from where it is, and says so in a message of the ring the other way.
//
// Both ends count messages from 0. A cell's flag is the number of its message plus one, so nothing is ever cleared.
// Sender's and receiver's objects are private to their process; RingMemory is shared.
#pragma once
#include <atomic>
#include <cstddef>

#include "base/copy.h"
#include "transport/transport.h"

namespace gpurdma {

struct RingMemory {
  static constexpr uint32_t kCells = 16;
  static constexpr size_t kHere = 96;  // bytes of payload that a cell holds

  // payload: of the message, here or in the lane. offer: where it is in the sender. taken: an offer of ours was copied,
  // or declined.
  enum class Form : uint32_t { payload, offer, taken };
  // Cells kept for `taken`, so that it never has to wait: its sender may leave us alone for long, while the payload's
  // owner waits for it. One more than there are offers, since an offer ends shortly before its cell is free again.
  static constexpr uint32_t kKept = 4, kMostOffers = kKept - 1;
  enum class State : uint32_t { open, closed, given_up };
  struct Offer {
    uint64_t address;  // in the sender
    uint32_t id;       // the sender's name for it
  };
  struct alignas(128) Cell {
    std::atomic<uint32_t> flag;
    uint32_t bytes : 30;
    Form form : 2;
    Header header;
    union {
      char here[kHere];
      uint64_t at;  // of the payload in the receiver's arena
      Offer offer;  // also of what was taken
    };
  };
  static constexpr size_t kMostOffered = (size_t(1) << 30) - 1;
  static_assert(sizeof(Cell) == 128, "two cache lines");

  alignas(128) std::atomic<uint32_t> consumed;  // messages
  std::atomic<State> state;                     // not open: the sender will send nothing more, nor offers what it did
  std::atomic<uint32_t> sender_reads;           // the sender may read the receiver's memory
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
    head_ = 0;
  }
  const Lane& lane() const { return lane_; }
  // Whether the receiver has consumed all that was sent.
  bool drained() { return look() == sent_; }
  uint32_t sent() const { return sent_; }

  // Where the payload of the next message goes: aligned to 32 bytes, or to cache lines beyond kHere; nullptr: no room
  // now. A message of up to half a lane finds room at the latest when all is consumed. To be followed by commit(), or
  // by nothing.
  char* place(size_t bytes) {
    if (!has_cell(kCellsForAll)) return nullptr;
    if (bytes <= RingMemory::kHere) {
      place_ = end_ = head_;
      return cell().here;
    }
    const size_t size = (bytes + 63) & ~size_t(63);
    if (!find_room(size)) return nullptr;
    end_ = place_ + size;
    return lane_.base + place_;
  }
  // Sends what lies at the last place().
  void commit(const Header& header, size_t bytes) {
    if (bytes > RingMemory::kHere) cell().at = lane_.at + place_;
    commit(header, bytes, RingMemory::Form::payload);
  }
  // Sends a message without payload of its own; false: no room now.
  bool send(const Header& header, size_t bytes, RingMemory::Form form, const RingMemory::Offer& offer) {
    if (!has_cell(form == RingMemory::Form::taken ? RingMemory::kCells : kCellsForAll)) return false;
    place_ = end_ = head_;
    cell().offer = offer;
    commit(header, bytes, form);
    return true;
  }

 private:
  void commit(const Header& header, size_t bytes, RingMemory::Form form) {
    RingMemory::Cell& c = cell();
    c.bytes = uint32_t(bytes) & uint32_t(RingMemory::kMostOffered);
    c.form = form;
    c.header = header;
    begin_[sent_ % RingMemory::kCells] = place_;
    head_ = end_;
    c.flag.store(++sent_, std::memory_order_release);
    if (bytes <= kHandedOver) {
      hand_over(&c, offsetof(RingMemory::Cell, here) + (bytes <= RingMemory::kHere ? bytes : sizeof c.at));
      if (bytes > RingMemory::kHere) hand_over(lane_.base + place_, bytes);
    }
  }

  // A lane is used from its start again as soon as there is room, at the earliest here: what is used again and again
  // stays in the first-level caches.
  static constexpr size_t kLap = 16384;
  // Small messages are moved nearer to the receiver, large ones would only take longer. Between two processes, 64
  // bytes: 0.49 to 0.36 us, 1 KiB: 0.68 to 0.61 us.
  static constexpr size_t kHandedOver = 2048;

  static constexpr uint32_t kCellsForAll = RingMemory::kCells - RingMemory::kKept;

  bool has_cell(uint32_t most) { return sent_ - consumed_ < most || sent_ - look() < most; }
  RingMemory::Cell& cell() { return ring_->cells[sent_ % RingMemory::kCells]; }
  uint32_t look() { return consumed_ = ring_->consumed.load(std::memory_order_acquire); }
  // Where the oldest payload begins that is not consumed, as far as we know.
  size_t tail() const { return consumed_ == sent_ ? head_ : begin_[consumed_ % RingMemory::kCells]; }

  bool find_room(size_t size) {
    if (fits(size, head_ < kLap)) return true;
    look();
    return fits(size, true);
  }
  // What is not consumed lies between tail and head, or, once the lane was begun again, behind tail and before head.
  bool fits(size_t size, bool may_extend) {
    if (consumed_ == sent_) head_ = 0;
    const size_t tail = this->tail();
    place_ = head_;
    if (head_ < tail) return head_ + size < tail;
    if (head_ < kLap && head_ + size <= lane_.bytes) return true;
    if (size < tail) {
      place_ = 0;
      return true;
    }
    return may_extend && head_ + size <= lane_.bytes;
  }

  RingMemory* ring_ = nullptr;
  uint32_t sent_ = 0, consumed_ = 0;  // messages; consumed as we last saw it
  Lane lane_;
  size_t head_ = 0;                        // end of the latest payload, in the lane
  size_t place_ = 0, end_ = 0;             // of the place given last
  size_t begin_[RingMemory::kCells] = {};  // of each message's payload; where it has none, of the next one's
};

class RingReceiver {
 public:
  // arena: where lanes lie; what a cell says is not trusted beyond it.
  RingReceiver(RingMemory* ring, const char* arena, size_t arena_bytes)
      : ring_(ring), arena_(arena), arena_bytes_(arena_bytes) {}

  // Calls arrived(cell, payload) for messages that have come, at most `most`; returns how many. payload: nullptr unless
  // the message carries it.
  template <class F>
  int poll(int most, F arrived) {
    int n = 0;
    for (; n < most; ++n) {
      if (!waiting()) break;
      const RingMemory::Cell& cell = ring_->cells[next_ % RingMemory::kCells];
      const size_t bytes = cell.bytes;
      const bool here = bytes <= RingMemory::kHere;
      if (cell.form != RingMemory::Form::payload)
        arrived(cell, nullptr);
      else if (here || (cell.at <= arena_bytes_ && bytes <= arena_bytes_ - cell.at))
        arrived(cell, here ? cell.here : arena_ + cell.at);
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
