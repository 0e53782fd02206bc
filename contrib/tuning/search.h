// The search: which candidate is best at which size, and the rows of a tuning table that say so.
//
// For every size all algorithms are raced, then pieces of the best, then depths. The winners of all sizes meet at every
// size; from these times come the rows. Where one row ends and the next begins is settled at the size between.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "contrib/tuning/table.h"

namespace gpurdma::tuning {

struct Search {
  size_t least_bytes = 4, most_bytes = size_t{64} << 20;  // sizes grow by powers of four
  double spread = 0.03;
  Effort heats{4000, 6e6, 15, 1.2};    // who is best at one size
  Effort finals{4000, 12e6, 41, 1.5};  // the winners, at every size
};

struct Result {
  std::vector<TuningRow> rows;     // for any ranks and nodes
  std::vector<size_t> sizes;       // bytes
  std::vector<Candidate> builtin;  // what the built-in table takes at each size
  std::vector<Candidate> table;    // what the rows take
  std::vector<Timing> builtin_timings, table_timings;
};

// Told before each step: what comes next, and which part of all has been done, 0 to 1.
using Progress = std::function<void(const std::string& next, double done)>;

Result search(Stopwatch& stopwatch, const Job& job, const Search& what, const Progress& progress);

}  // namespace gpurdma::tuning
