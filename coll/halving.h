// Recursive halving and doubling: every step exchanges half of what the step before did, with a place twice as far
// away; then the same steps backwards.
//
// As few bytes as the ring in as few steps as doubling: for vectors between the small and the very large, and for many
// ranks. Source: Rabenseifner, "Optimization of collective reduction operations", 2004; with the nearest places first,
// as in Thakur, Rabenseifner and Gropp, 2005, section 4.4: operands stay in order, so the op need not commute.
#pragma once
#include "coll/algorithm.h"
#include "plan/blocks.h"
#include "plan/slots.h"

namespace gpurdma {

// Reduces the blocks, one to each place of a group whose size q is a power of two: place r ends with the block whose
// number has r's log2 q bits in reverse order reduced in output. `own` holds our contribution.
//   log2 q steps, the partner of step k differs in bit k; m (q - 1) / q bytes sent per place.
//   Operands: each step joins two neighbouring runs of places, the lower one on the left.
// A message is several blocks that together fit a piece, or a piece of one block. Where a step's blocks are at least a
// piece long, what it reduces is exactly what the next one sends.
void halving_reduce_scatter(Plan& plan, const Group& group, const Blocks& blocks, Buf own, size_t piece, Slots& slots);

// Gathers the blocks everywhere: the same steps and bytes, backwards.
void doubling_allgather(Plan& plan, const Group& group, const Blocks& blocks, size_t piece);

// The two in turn, for any number of places; long vectors in chunks. n places, q the largest power of two not above n:
//   Steps: 2 log2 q, and 2 more where q < n: one place of a pair then works for both (fold.h).
//   Bytes sent: 2 m (q - 1) / q; by places of a pair m more, or m alone.
//   All places hold the same bits: a block is reduced at one place and then copied.
void halving_allreduce(Plan& plan, const Group& group, const Call& call, Tuning tuning);

}  // namespace gpurdma
