// A Plan is one rank's program for one collective: operations on slices of three buffers, recorded in program order.
//
// Meaning: as if the operations ran one after another. The engine may run them in any order that keeps this meaning;
// an operation waits only for earlier ones that touch the same elements, one of the two writing them. Input is never
// written. The k-th send from rank a to rank b meets the k-th recv on b from a.
//
// Life: an algorithm records operations, seal() derives what the engine needs, and from then on the plan is constant:
// it holds no addresses and no state, so it is cached and started any number of times at once. Not thread-safe while
// it is recorded; free to share once sealed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/span.h"
#include "plan/growing.h"

namespace gpurdma {

enum class Buf : uint8_t { input, output, scratch };

struct Slice {  // elements [at, at + n) of a buffer; packed, since plans are long: an operation has 64 bytes
  Buf buf : 8;
  size_t at : 56;
  size_t n;
};

// One operation. send reads a; recv writes dst; copy writes dst from a; reduce writes dst = a op b, where a holds the
// operand of the lower rank. Slices of one operation have equal n > 0.
struct PlanOp {
  enum class Kind : uint8_t { send, recv, reduce, copy };
  Kind kind;
  uint32_t peer;      // send, recv: index into peers()
  uint32_t position;  // send, recv: this is the position-th message to (from) that peer, from 0
  uint32_t consumer;  // recv, reduce: see Plan::kNone
  Slice dst, a, b;
};

class Plan {
 public:
  // No operation. A recv's `consumer` is the one reduce that reads what it receives, where that is the only reader,
  // reads exactly the slice received as one of its operands, writes elsewhere, and the slice lies in scratch: the
  // engine may then reduce straight from the message, and the slice itself is never written. A reduce's `consumer` is
  // the first send of exactly the slice that it writes: the engine may write the result into the message in the same
  // pass. Otherwise kNone.
  static constexpr uint32_t kNone = UINT32_MAX;

  // All that is exchanged with one other rank, in program order.
  struct Peer {
    int rank;                    // in the communicator
    Span<const uint32_t> sends;  // operations
    Span<const uint32_t> recvs;
    size_t elements_sent, elements_received;
  };

  // rank: our place among `size` ranks of the communicator.
  Plan(int rank, int size) : rank_(rank), size_(size) {}
  Plan(Plan&&) = default;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Recording. A call with n == 0 records nothing. peer: a rank of the communicator, not our own.
  void send(int peer, Slice a);
  void recv(Slice dst, int peer);
  void copy(Slice dst, Slice a);
  void reduce(Slice dst, Slice a, Slice b);
  Slice scratch(size_t n);  // n more elements of scratch

  // Ends the recording. Cost: linear in operations, dependencies and ranks, but for a sort of the places where slices
  // begin and end.
  void seal();

  // What the engine reads; valid once sealed.
  Span<const PlanOp> ops() const { return {ops_.data(), ops_.size()}; }
  Span<const Peer> peers() const { return {peers_.data(), peers_.size()}; }  // in increasing rank order
  // Operations that wait for `op`, in program order, each listed once.
  Span<const uint32_t> successors(uint32_t op) const {
    return {successors_.data() + first_successor_[op], first_successor_[op + 1] - first_successor_[op]};
  }
  Span<const uint32_t> waits() const { return {waits_.data(), waits_.size()}; }  // for each: how many it waits for
  Span<const uint32_t> roots() const { return {roots_.data(), roots_.size()}; }  // wait for none; in program order
  size_t scratch_elements() const { return scratch_; }

 private:
  void record(PlanOp::Kind kind, int peer, Slice dst, Slice a, Slice b);
  void group_by_peer();
  void derive_order();

  int rank_, size_;
  size_t scratch_ = 0;
  Growing<PlanOp> ops_;
  std::vector<Peer> peers_;
  std::vector<uint32_t> messages_;  // what the spans of peers_ show: for each peer its sends, then its recvs
  std::vector<uint32_t> successors_, first_successor_;
  std::vector<uint32_t> waits_, roots_;
};

}  // namespace gpurdma
