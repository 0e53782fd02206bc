#include "coll/catalogue.h"

#include <array>
#include <cstring>
#include <string>

#include "coll/doubling.h"
#include "coll/ring.h"

namespace gpurdma {
namespace {

// The comments in doubling.h and ring.h derive these.
Cost cost_of_doubling(int ranks, double bytes) {
  int core = 1, steps = 0;
  for (; core <= ranks / 2; core *= 2) ++steps;
  const int pairs = ranks - core;
  return {1.0 * steps + (pairs > 0) + (pairs > core / 2), bytes * (steps + (pairs > 0))};
}

Cost cost_of_ring(int ranks, double bytes) {
  const double steps = 2.0 * (ranks - 1);
  return {steps, bytes * steps / ranks};
}

constexpr Limits kNoLimits{};
constexpr Limits kCommutative{INT_MAX, false, true};

constexpr Algorithm kCatalogue[] = {
    {Collective::allreduce, "doubling", doubling_allreduce, kNoLimits, cost_of_doubling,
     "recursive doubling: fewest messages, all bytes in each; small vectors, many ranks"},
    {Collective::allreduce, "ring", ring_allreduce, kCommutative, cost_of_ring,
     "pipelined ring, reduce-scatter then allgather: fewest bytes, many messages; large vectors"},
};

}  // namespace

const char* name_of(Collective collective) {
  static constexpr const char* kNames[kCollectives] = {"allreduce"};
  return kNames[static_cast<int>(collective)];
}

Span<const Algorithm> catalogue() { return {kCatalogue, std::size(kCatalogue)}; }

const Algorithm* find_algorithm(Collective collective, const char* name) {
  for (const Algorithm& algorithm : kCatalogue) {
    if (algorithm.collective == collective && std::strcmp(algorithm.name, name) == 0) return &algorithm;
  }
  return nullptr;
}

const char* algorithm_names(Collective collective) {
  static const std::array<std::string, kCollectives> lists = [] {
    std::array<std::string, kCollectives> made;
    for (const Algorithm& algorithm : kCatalogue) {
      std::string& list = made[static_cast<int>(algorithm.collective)];
      list += list.empty() ? "" : ", ";
      list += algorithm.name;
    }
    return made;
  }();
  return lists[static_cast<int>(collective)].c_str();
}

}  // namespace gpurdma
