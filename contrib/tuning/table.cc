#include "contrib/tuning/table.h"

#include <algorithm>
#include <cmath>

namespace gpurdma::tuning {
namespace {

bool good_enough(const Measured& size, size_t finalist, double spread) {
  const Timing& best = size.timings[fastest(size.timings)];
  return size.timings[finalist].us <= best.us * (1 + std::max(spread, std::min(best.noise, kMostNoise)));
}

// The longest segment from `first` on.
Segment longest(const std::vector<Measured>& sizes, size_t first, double spread) {
  Segment best{first, first, fastest(sizes[first].timings)};
  double best_time = INFINITY;  // sum of logarithms: every size counts alike
  for (size_t finalist = 0; finalist < sizes[first].timings.size(); ++finalist) {
    size_t end = first;
    double time = 0;
    for (; end < sizes.size() && good_enough(sizes[end], finalist, spread); ++end)
      time += std::log(sizes[end].timings[finalist].us);
    if (end == first || end - 1 < best.last || (end - 1 == best.last && time >= best_time)) continue;
    best = {first, end - 1, finalist};
    best_time = time;
  }
  return best;
}

}  // namespace

std::vector<Segment> merge(const std::vector<Measured>& sizes, double spread) {
  std::vector<Segment> segments;
  for (size_t first = 0; first < sizes.size(); first = segments.back().last + 1)
    segments.push_back(longest(sizes, first, spread));
  return segments;
}

std::vector<size_t> cliffs(const std::vector<double>& us, double spread) {
  std::vector<size_t> found;
  for (size_t i = 0; i + 1 < us.size(); ++i)
    if (us[i] > us[i + 1] * (1 + spread)) found.push_back(i);
  return found;
}

}  // namespace gpurdma::tuning
