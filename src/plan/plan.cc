#include "plan/plan.h"

#include <cassert>

#include "plan/dependencies.h"

namespace gpurdma {

void Plan::send(int peer, Slice a) { record(PlanOp::Kind::send, peer, {}, a, {}); }

void Plan::recv(Slice dst, int peer) { record(PlanOp::Kind::recv, peer, dst, {}, {}); }

void Plan::copy(Slice dst, Slice a) {
  assert(dst.n == a.n);
  record(PlanOp::Kind::copy, 0, dst, a, {});
}

void Plan::reduce(Slice dst, Slice a, Slice b) {
  assert(dst.n == a.n && dst.n == b.n);
  record(PlanOp::Kind::reduce, 0, dst, a, b);
}

Slice Plan::scratch(size_t n) {
  const Slice slice{Buf::scratch, scratch_, n};
  scratch_ += n;
  return slice;
}

void Plan::record(PlanOp::Kind kind, int peer, Slice dst, Slice a, Slice b) {
  if (dst.n == 0 && a.n == 0) return;
  assert(kind == PlanOp::Kind::send || dst.buf != Buf::input);
  ops_.push_back({kind, static_cast<uint32_t>(peer), 0, kNone, dst, a, b});  // `peer` is a rank until seal()
}

void Plan::seal() {
  ops_.shrink_to_fit();  // sealed plans are kept
  group_by_peer();
  derive_order();
}

// Sorts the messages by peer, program order kept, in two passes: count, then place.
void Plan::group_by_peer() {
  struct Messages {
    uint32_t sends, recvs;
  };
  std::vector<Messages> of_rank(size_);
  uint32_t messages = 0;
  for (const PlanOp& op : ops_) {
    if (op.kind == PlanOp::Kind::send) ++messages, ++of_rank[op.peer].sends;
    if (op.kind == PlanOp::Kind::recv) ++messages, ++of_rank[op.peer].recvs;
  }

  messages_.resize(messages);
  std::vector<uint32_t> index_of_rank(size_);
  const uint32_t* place = messages_.data();
  for (int rank = 0; rank < size_; ++rank) {
    const auto [sends, recvs] = of_rank[rank];
    if (sends + recvs == 0) continue;
    assert(rank != rank_);
    index_of_rank[rank] = static_cast<uint32_t>(peers_.size());
    peers_.push_back({rank, {place, sends}, {place + sends, recvs}, 0, 0});
    place += sends + recvs;
    of_rank[rank] = {};
  }

  for (uint32_t i = 0; i < ops_.size(); ++i) {
    PlanOp& op = ops_[i];
    const bool send = op.kind == PlanOp::Kind::send;
    if (!send && op.kind != PlanOp::Kind::recv) continue;
    Messages& so_far = of_rank[op.peer];
    op.position = send ? so_far.sends++ : so_far.recvs++;
    op.peer = index_of_rank[op.peer];
    Peer& peer = peers_[op.peer];
    (send ? peer.elements_sent : peer.elements_received) += send ? op.a.n : op.dst.n;
    const uint32_t* list = send ? peer.sends.data() : peer.recvs.data();
    messages_[list - messages_.data() + op.position] = i;
  }
}

// Turns "waits for" around: the engine asks what may go on once an operation is done.
void Plan::derive_order() {
  Dependencies dependencies = derive_dependencies({ops_.data(), ops_.size()});
  const std::vector<uint32_t>& earlier = dependencies.earlier;
  waits_ = std::move(dependencies.waits);
  const uint32_t ops = static_cast<uint32_t>(ops_.size());
  for (uint32_t i = 0; i < ops; ++i) {
    if (waits_[i] == 0) roots_.push_back(i);
  }

  // Each list is filled from its end: what begins as the end of a list becomes its beginning.
  first_successor_.assign(ops + 1, 0);
  for (uint32_t op : earlier) ++first_successor_[op];
  for (uint32_t i = 0; i < ops; ++i) first_successor_[i + 1] += first_successor_[i];
  successors_.resize(earlier.size());
  size_t entry = earlier.size();
  for (uint32_t i = ops; i-- > 0;) {
    for (uint32_t w = 0; w < waits_[i]; ++w) successors_[--first_successor_[earlier[--entry]]] = i;
  }
}

}  // namespace gpurdma
