// Dependencies: which earlier operations each operation of a plan waits for.
//
// Operations are taken in program order. For every cell (cells.h) we know who wrote it last and who has read it since:
// a reader waits for the writer, and the next writer waits for the readers, or for the writer where nobody read. What
// these imply (the writer before last, say) is left out.
#pragma once
#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace gpurdma {

struct Dependencies {
  std::vector<uint32_t> waits;    // for each operation, how many it waits for
  std::vector<uint32_t> earlier;  // which ones, each once: first those of operation 0, then those of operation 1, ...
};

// Also fills in the `consumer` of receives and reductions.
Dependencies derive_dependencies(Span<PlanOp> ops);

}  // namespace gpurdma
