#include "coll/ring.h"

#include <algorithm>

#include "coll/chunks.h"

namespace gpurdma {
namespace {

// With two places a chunk's results can go out in the pass that computes them if the sends before them, those of the
// next chunk, have gone by then: so there are slots for several chunks.
constexpr int kChunksInSlots = 4;

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
  if (group.size() == 1) return keep_own(plan, call);
  const size_t largest = Blocks(0, call.count, group.size()).largest();
  const size_t piece = std::min(tuning.piece, largest);
  Slots slots(plan, piece, tuning.depth);
  in_chunks(
      call.count, std::min(largest, piece * std::max(1, tuning.depth / kChunksInSlots)) * group.size(),
      [&](size_t at, size_t n) {
        ring_reduce_scatter(plan, group, Blocks(at, n, group.size()), call.own(), piece, slots);
      },
      [&](size_t at, size_t n) { ring_allgather(plan, group, Blocks(at, n, group.size()), piece); });
}

}  // namespace gpurdma
