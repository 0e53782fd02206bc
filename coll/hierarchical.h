// Two levels: among the places of a node, and between nodes, where every byte passes once and not once for each place.
//
// Inside a node the vector is reduced in shards, one at each place; the holders of a shard on all nodes reduce it among
// themselves, all shards at the same time, so that all of a node's ways out are used; then the shards are gathered
// inside the node. For large vectors on several nodes with several places each.
// Source: Cho, Finkler, Serrano, Kung and Hunter, "BlueConnect", 2019, with two levels.
#pragma once
#include "coll/algorithm.h"

namespace gpurdma {

// Of group.layout(); N nodes, S the number of places of the smallest one, m bytes. There are S shards; a node with L
// places has L - S that hold none, but work in its ring as any other. Needs a commutative op.
//   One chunk: a ring in the node, L - 1 steps; between nodes halving where N is a power of two, 2 log2 N steps,
//   otherwise a ring, 2 (N - 1) steps; and L - 1 steps in the node again.
//   Bytes sent: inside the node about 2 m (L - 1) / L where L = S, at most 2 m otherwise; between nodes
//   2 (m / S) (N - 1) / N per holder.
//   All places hold the same bits: every element is reduced at one place of each level at a time, then copied.
//   With all places on one node it is the ring, with one place per node what runs between nodes.
void hierarchical_allreduce(Plan& plan, const Group& group, const Call& call, Tuning tuning);

}  // namespace gpurdma
