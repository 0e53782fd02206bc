// Trees of any radix k, with place 0 at the root: a place is the child of the one that has its last digit other than 0,
// in base k, set to 0. A subtree is a run of places.
//
// Source: the binomial tree is the one with k = 2; Thakur, Rabenseifner and Gropp, 2005. n places, m bytes: as many
// steps as the place with most digits other than 0 has, at most log_k n rounded up; m bytes sent per place that is not
// the root, and by the root m for each child, (k - 1) log_k n.
#pragma once
#include "coll/algorithm.h"

namespace gpurdma {

// Reduces `own` of all places to output of place 0; other outputs hold partial results. Operands are joined in order,
// lower places on the left.
void tree_reduce(Plan& plan, const Group& group, Buf own, size_t count, Tuning tuning);

// Copies output of place 0 to output everywhere.
void tree_broadcast(Plan& plan, const Group& group, size_t count, Tuning tuning);

}  // namespace gpurdma
