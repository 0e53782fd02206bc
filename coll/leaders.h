// Through leaders: each node reduces to its first place, the leaders exchange among themselves, each node copies the
// result. One message between nodes for each step of the exchange, from one place of a node: for small vectors on
// several nodes with many places each.
//
// Source: the usual two-level scheme, as in Karonis et al., "Exploiting hierarchy in parallel computer networks to
// optimize collective operation performance", 2000.
#pragma once
#include "coll/algorithm.h"

namespace gpurdma {

// Of group.layout(); N nodes, m bytes, radix k. Needs a commutative op, since the places of a node may be anywhere.
//   Steps: a tree of radix k up and down in the largest node (tree.h), and recursive multiplying among N leaders.
//   Bytes sent: between nodes, by leaders only, what multiplying.h says for N places; inside, m up by all others, and m
//   down for each child.
//   All places hold the same bits: the leaders' exchange gives it, the rest is copied.
//   With all places on one node it is recursive multiplying, as it is with one place per node.
void leaders_allreduce(Plan& plan, const Group& group, const Call& call, Tuning tuning);

}  // namespace gpurdma
