// What the simulator reduces: element types whose results show who contributed, how often, and in which order.
//
// Expected values come from arithmetic on the contributions, which are hashes of (salt, rank, index).
#pragma once
#include "base/span.h"
#include "reduce/host.h"

namespace gpurdma::sim {

struct Element {
  const char* name;
  size_t bytes;
  bool any_order;  // the op commutes; otherwise a result is right only if operands were neighbours, lower rank left
  bool exact;      // the result does not depend on the order of the operands (as it does for floating point)
  // The contribution of `rank`, elements [0, count).
  void (*fill)(void* at, uint64_t salt, int rank, size_t count);
  Reduce reduce;
  // Whether `at` holds the reduction of all ranks; otherwise *wrong is the first element that does not.
  bool (*right)(const void* at, uint64_t salt, int ranks, size_t count, size_t* wrong);
};

Span<const Element> elements();

}  // namespace gpurdma::sim
