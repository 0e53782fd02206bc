#include "coll/ring.h"

#include <algorithm>

namespace gpurdma {
namespace {

struct Ring {
  const Group& group;

  int next() const { return group.rank((group.place() + 1) % group.size()); }
  int prev() const { return group.rank((group.place() + group.size() - 1) % group.size()); }
  // The block `steps` places behind our own; steps from -1 to size - 1.
  int behind(int steps) const { return (group.place() - steps + group.size()) % group.size(); }
};

}  // namespace

void ring_reduce_scatter(Plan& plan, const Group& group, const Blocks& blocks, Buf own, size_t piece, Slots& slots) {
  const Ring ring{group};
  for (int step = 0; step < group.size() - 1; ++step) {
    const Buf from = step == 0 ? own : Buf::output;
    for_pieces(blocks, ring.behind(step), piece, [&](size_t at, size_t n) { plan.send(ring.next(), {from, at, n}); });
    for_pieces(blocks, ring.behind(step + 1), piece, [&](size_t at, size_t n) {
      const Slice partial = slots.next(n);
      plan.recv(partial, ring.prev());
      plan.reduce({Buf::output, at, n}, partial, {own, at, n});
    });
  }
}

void ring_allgather(Plan& plan, const Group& group, const Blocks& blocks, size_t piece) {
  const Ring ring{group};
  for (int step = 0; step < group.size() - 1; ++step) {
    for_pieces(blocks, ring.behind(step - 1), piece, [&](size_t at, size_t n) {
      plan.send(ring.next(), {Buf::output, at, n});
    });
    for_pieces(blocks, ring.behind(step), piece, [&](size_t at, size_t n) {
      plan.recv({Buf::output, at, n}, ring.prev());
    });
  }
}

void ring_allreduce(Plan& plan, const Group& group, const Call& call, Tuning tuning) {
  const Blocks whole(0, call.count, group.size());
  if (group.size() == 1) {
    if (!call.in_place) plan.copy({Buf::output, 0, call.count}, {Buf::input, 0, call.count});
    return;
  }
  if (call.count == 0) return;

  // A chunk is as long as the slots are: each of its blocks passes through them in one go.
  const size_t piece = std::min(tuning.piece, whole.largest());
  const size_t window = piece * tuning.depth;
  const int chunks = static_cast<int>((whole.largest() + window - 1) / window);
  const Blocks chunk(0, call.count, chunks);
  const auto blocks = [&](int c) { return Blocks(chunk.at(c), chunk.size(c), group.size()); };

  // Messages to one peer go out in program order, and the gathering of a chunk begins when its last reduction is done.
  // The reductions of the next chunk come first, so that they need not wait for that.
  Slots slots(plan, piece, tuning.depth);
  ring_reduce_scatter(plan, group, blocks(0), call.own(), piece, slots);
  for (int c = 0; c < chunks; ++c) {
    if (c + 1 < chunks) ring_reduce_scatter(plan, group, blocks(c + 1), call.own(), piece, slots);
    ring_allgather(plan, group, blocks(c), piece);
  }
}

}  // namespace gpurdma
