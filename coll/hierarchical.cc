#include "coll/hierarchical.h"

#include <algorithm>

#include "coll/chunks.h"
#include "coll/halving.h"
#include "coll/layout.h"
#include "coll/ring.h"

namespace gpurdma {
namespace {

// The block that a ring's reduce-scatter leaves at a place, and the place that a block is left at.
int block_at(int place, int places) { return (place + 1) % places; }
int place_of(int block, int places) { return (block + places - 1) % places; }

// The ranks that hold the shard, node by node.
std::vector<int> holders(const Group& group, const Layout& layout, int shard) {
  std::vector<int> ranks;
  for (int node = 0; node < layout.nodes(); ++node) {
    const Span<const int> members = layout.members(node);
    ranks.push_back(group.rank(members[place_of(shard, static_cast<int>(members.size()))]));
  }
  return ranks;
}

}  // namespace

void hierarchical_allreduce(Plan& plan, const Group& group, const Call& call, Tuning tuning) {
  if (group.layout() == nullptr) return ring_allreduce(plan, group, call, tuning);
  const Layout& layout = *group.layout();
  const int node = layout.node_of(group.place()), nodes = layout.nodes(), shards = layout.smallest();
  const std::vector<int> inside_ranks = ranks_of(group, layout.members(node));
  const Group inside(layout.index(group.place()), {inside_ranks.data(), inside_ranks.size()});

  const int shard = block_at(inside.place(), inside.size());  // ours
  const bool holds = shard < shards;
  const std::vector<int> between_ranks = holds ? holders(group, layout, shard) : std::vector<int>();
  const Group between(node, {between_ranks.data(), between_ranks.size()});
  const bool halves = (nodes & (nodes - 1)) == 0;
  const Buf mine = inside.size() == 1 ? call.own() : Buf::output;  // what goes between nodes

  // A chunk gives every node a piece of every shard at least.
  const size_t largest = Blocks(0, call.count, shards).largest();
  const size_t piece = std::min(tuning.piece, largest);
  const size_t window = std::min(largest, piece * static_cast<size_t>(std::max(tuning.depth, nodes)));
  Slots inside_slots(plan, piece, tuning.depth), between_slots(plan, piece, 2 * static_cast<size_t>(tuning.depth));
  const auto parts = [&](size_t at, size_t n) {
    const Blocks shard_of_chunk(at, n, shards);
    return Blocks(shard_of_chunk.at(shard), shard_of_chunk.size(shard), nodes);
  };
  in_chunks(
      call.count, window * static_cast<size_t>(shards),
      [&](size_t at, size_t n) {
        ring_reduce_scatter(plan, inside, Blocks(at, n, shards), call.own(), piece, inside_slots);
      },
      [&](size_t at, size_t n) {
        if (holds)
          (halves ? halving_reduce_scatter : ring_reduce_scatter)(plan, between, parts(at, n), mine, piece,
                                                                  between_slots);
      },
      [&](size_t at, size_t n) {
        if (holds) (halves ? doubling_allgather : ring_allgather)(plan, between, parts(at, n), piece);
      },
      [&](size_t at, size_t n) { ring_allgather(plan, inside, Blocks(at, n, shards), piece); });
}

}  // namespace gpurdma
