// Recursive doubling: in step k every place exchanges all it has with the place whose number differs in bit k.
//
// The fewest steps there are, and all bytes in each of them: for small messages, and for many ranks.
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005.
#pragma once
#include "coll/algorithm.h"

namespace gpurdma {

// n places, m bytes; let q be the largest power of two that is not above n. Where q < n, the first 2 (n - q) places
// work in pairs: the even one hands its contribution to the odd one and waits for the result.
//   Steps: log2 q where q = n, otherwise log2 q + 1, and another one where n - q > q / 2 (a chain of exchanges that
//   begins in one pair ends in another).
//   Bytes sent: m log2 q by a place that is in no pair, m (log2 q + 1) by an odd one of a pair, m by an even one.
//   Operands: what comes from the lower places is always on the left, and both partners reduce the same two operands,
//   so all places hold the same bits. Works for ops that are associative only.
void doubling_allreduce(Plan& plan, const Group& group, const Call& call, Tuning tuning);

}  // namespace gpurdma
