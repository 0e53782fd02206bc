// Collectives around a ring: every place sends to the next one and receives from the one before.
//
// Each rank sends the least number of bytes that is possible, and only to its neighbours, in many steps: for large
// messages. Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
#pragma once
#include "coll/algorithm.h"
#include "plan/blocks.h"
#include "plan/slots.h"

namespace gpurdma {

// Reduces the blocks, one to each place: place r ends with block r + 1 of output reduced, the other blocks hold partial
// results. `own` holds our contribution. Needs a commutative op.
//   n places, m bytes: n - 1 steps; each place sends all blocks but block r + 1, about m (n - 1) / n bytes.
//   Operands: block b is summed up in the order b, b + 1, ..., around the ring, what came before on the left.
void ring_reduce_scatter(Plan& plan, const Group& group, const Blocks& blocks, Buf own, size_t piece, Slots& slots);

// Gathers the blocks everywhere: place r starts with block r + 1 of output, and ends with all of them.
//   n - 1 steps; each place sends all blocks but block r + 2, about m (n - 1) / n bytes.
void ring_allgather(Plan& plan, const Group& group, const Blocks& blocks, size_t piece);

// The two in turn. Long vectors are cut into chunks that stay in the cache from the reduction to the gathering.
//   One chunk: 2 (n - 1) steps, each place sends about 2 m (n - 1) / n bytes. All places hold the same bits, since each
//   block is reduced at one place at a time and then copied.
void ring_allreduce(Plan& plan, const Group& group, const Call& call, Tuning tuning);

}  // namespace gpurdma
