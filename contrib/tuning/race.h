// Races: candidates are measured block by block in turn, so that all see the same machine, and medians are compared.
#pragma once
#include <cstddef>
#include <limits>
#include <vector>

#include "contrib/tuning/candidate.h"

namespace gpurdma::tuning {

// What measures. All ranks call alike, and the answers are equal on all ranks.
class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  // Runs it once and sees that the result is right; ends the job if not.
  virtual void check(const Candidate& candidate, size_t bytes) = 0;
  // The mean time of one of `calls` calls, in us, by the slowest rank.
  virtual double block_us(const Candidate& candidate, size_t bytes, int calls) = 0;
};

struct Effort {
  double block_us = 3000;  // a block takes about so long, at least a call
  double budget_us = 5e6;  // a race ends after that, but not before kLeastRounds
  int rounds = 9;
  double give_up = 1.25;  // who is so much slower than the best is measured no more
};
constexpr int kLeastRounds = 3;

struct Timing {
  double us = std::numeric_limits<double>::infinity();  // median of the blocks
  double noise = 0;                                     // half the distance of the quartiles, as a part of the median
};

// One timing for each candidate.
std::vector<Timing> race(Stopwatch& stopwatch, size_t bytes, const std::vector<Candidate>& candidates,
                         const Effort& effort);

// The candidate with the least time; timings are not empty.
size_t fastest(const std::vector<Timing>& timings);

}  // namespace gpurdma::tuning
