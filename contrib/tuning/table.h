// From times to rows: the fewest rows whose times are nowhere more than the spread above the best.
#pragma once
#include <vector>

#include "contrib/tuning/race.h"

namespace gpurdma::tuning {

// The times of all finalists, candidates that were best at some size, at one size.
struct Measured {
  size_t bytes;
  std::vector<Timing> timings;  // by finalist
};

// Sizes first to last, places in the list of sizes, run by one finalist.
struct Segment {
  size_t first, last;
  size_t finalist;
};

// Covers all sizes by the fewest segments in which the finalist is never slower than the best at that size by more than
// `spread` (0.03 is 3 %), or by more than the best one's own noise where that is larger, up to kMostNoise. Where
// several reach equally far it is the one that is faster on the whole.
constexpr double kMostNoise = 0.25;
std::vector<Segment> merge(const std::vector<Measured>& sizes, double spread);

// Sizes, as places in the list, at which a call takes longer than at the next larger one by more than `spread`: there
// should be none. us: by size.
std::vector<size_t> cliffs(const std::vector<double>& us, double spread);

}  // namespace gpurdma::tuning
