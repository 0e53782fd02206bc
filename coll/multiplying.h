// Recursive multiplying: in every step groups of `radix` places exchange all they have, each with each, so that a step
// joins radix times as much as the one before. With radix 2 it is recursive doubling.
//
// The fewest steps, and all bytes in each of them: for small messages, and for many ranks. A higher radix trades
// messages that leave at the same time for steps that wait for each other.
// Source: Ruefenacht, Bull and Booth, "Generalisation of recursive doubling for allreduce", 2017; for radix 2 Thakur,
// Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005.
#pragma once
#include "coll/algorithm.h"

namespace gpurdma {

// n places, m bytes, radix k; q = k^s j is the largest such number not above n, with j < k.
//   Steps: s with k - 1 partners each, and one with j - 1 where j > 1. Where q < n some places work in pairs (fold.h),
//   which costs one step more, and another one where a chain of exchanges that begins in one pair ends in another.
//   Bytes sent: m (s (k - 1) + j - 1) by a place that is in no pair, m more by an odd one of a pair, m by an even one.
//   Operands: every group joins its runs of places from the lowest to the highest, on all its places in the same order,
//   so all places hold the same bits. Works for ops that are associative only.
void multiplying_allreduce(Plan& plan, const Group& group, const Call& call, Tuning tuning);

// With radix 2, whatever the tuning says.
void doubling_allreduce(Plan& plan, const Group& group, const Call& call, Tuning tuning);

// Reduces `count` elements of `mine` of all places into output on all places, in a group of any size. As above.
void multiplying_exchange(Plan& plan, const Group& group, Buf mine, size_t count, Tuning tuning);

}  // namespace gpurdma
