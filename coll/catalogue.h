// The catalogue: every algorithm of every collective, one row each.
//
// Selection, settings, counters, the simulator, the tests and the benches all draw from this table. To add an algorithm
// write its function and its row in catalogue.cc.
#pragma once
#include <climits>

#include "coll/algorithm.h"

namespace gpurdma {

enum class Collective : int { allreduce };
constexpr int kCollectives = 1;
const char* name_of(Collective collective);

// What an algorithm needs of a call. Facts that are equal on all ranks.
struct Limits {
  int most_ranks = INT_MAX;
  bool power_of_two = false;  // rank count
  bool commutative = false;   // op
};

// What an algorithm makes of a tuning and a group; where it is false, plans do not depend on it.
struct Uses {
  bool radix = false;   // Tuning::radix
  bool layout = false;  // Group::layout()
};

// Among whom a call runs: what its cost depends on.
struct Shape {
  int ranks;
  int nodes = 1;  // with equally many ranks each
  int radix = 2;
};

// What one call costs on its critical path, to first order.
struct Cost {
  double messages;  // one after another
  double bytes;     // sent by the busiest rank
};

struct Algorithm {
  Collective collective;
  const char* name;  // lower case, unique within the collective; the name that settings use
  Build build;
  Limits limits;
  Uses uses;
  Cost (*cost)(const Shape& shape, double bytes);
  const char* description;  // one line

  bool takes(int ranks) const {
    return ranks <= limits.most_ranks && (!limits.power_of_two || (ranks & (ranks - 1)) == 0);
  }
};

// All rows; an algorithm's index in it is stable while the process runs.
Span<const Algorithm> catalogue();

// nullptr: there is none of that name.
const Algorithm* find_algorithm(Collective collective, const char* name);

// "doubling, ring": for help texts and errors. Static.
const char* algorithm_names(Collective collective);

}  // namespace gpurdma
