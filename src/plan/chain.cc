#include "plan/chain.h"

#include <algorithm>

namespace gpurdma {
namespace {

// One rank, working through its plan in program order.
struct Progress {
  explicit Progress(const Plan& p) : plan(p), chain(p.ops().size(), 0) {}

  const Plan& plan;
  std::vector<int> chain;  // for each operation, messages on the longest chain up to its end
  uint32_t done = 0;       // operations before this one
};

// What `to` sends us as its position-th message, if it has done so; Plan::kNone otherwise.
uint32_t find_send(const Progress& from, int to, uint32_t position) {
  const Span<const Plan::Peer> peers = from.plan.peers();
  const auto* peer =
      std::lower_bound(peers.begin(), peers.end(), to, [](const Plan::Peer& p, int rank) { return p.rank < rank; });
  if (peer == peers.end() || peer->rank != to || position >= peer->sends.size()) return Plan::kNone;
  const uint32_t send = peer->sends[position];
  return send < from.done ? send : Plan::kNone;
}

// Moves a rank on until a recv has to wait; whether it moved.
bool advance(Progress& rank, const std::vector<Progress>& all) {
  const Span<const PlanOp> ops = rank.plan.ops();
  const uint32_t before = rank.done;
  for (; rank.done < ops.size(); ++rank.done) {
    const uint32_t i = rank.done;
    if (ops[i].kind == PlanOp::Kind::recv) {
      const Progress& from = all[rank.plan.peers()[ops[i].peer].rank];
      const uint32_t send = find_send(from, rank.plan.rank(), ops[i].position);
      if (send == Plan::kNone) break;
      rank.chain[i] = std::max(rank.chain[i], from.chain[send] + 1);
    }
    for (uint32_t later : rank.plan.successors(i)) rank.chain[later] = std::max(rank.chain[later], rank.chain[i]);
  }
  return rank.done > before;
}

}  // namespace

int longest_chain(const std::vector<Plan>& plans) {
  std::vector<Progress> ranks;
  for (const Plan& plan : plans) ranks.emplace_back(plan);
  for (bool moved = true; moved;) {
    moved = false;
    for (Progress& rank : ranks) moved |= advance(rank, ranks);
  }

  int longest = 0;
  for (const Progress& rank : ranks) {
    if (rank.done < rank.chain.size()) return -1;
    for (int chain : rank.chain) longest = std::max(longest, chain);
  }
  return longest;
}

Sent sent_by(const Plan& plan) {
  Sent sent{0, 0};
  for (const PlanOp& op : plan.ops()) {
    if (op.kind != PlanOp::Kind::send) continue;
    ++sent.messages;
    sent.elements += op.a.n;
  }
  return sent;
}

}  // namespace gpurdma
