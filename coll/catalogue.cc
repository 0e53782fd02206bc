#include "coll/catalogue.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "coll/fold.h"
#include "coll/halving.h"
#include "coll/hierarchical.h"
#include "coll/leaders.h"
#include "coll/multiplying.h"
#include "coll/ring.h"

namespace gpurdma {
namespace {

// The comments in the algorithms' headers derive these.

Cost cost_of_ring(const Shape& shape, double bytes) {
  const double steps = 2.0 * (shape.ranks - 1);
  return {steps, bytes * steps / shape.ranks};
}

Cost cost_of_multiplying(const Shape& shape, double bytes) {
  const Fold fold(shape.ranks, shape.radix);
  int steps = 0, partners = 0, last = 1;  // last: places that one of a group of the last step stands for
  for (int stride = 1; stride < fold.size; ++steps) {
    const int operands = std::min(shape.radix, fold.size / stride);
    partners += operands - 1;
    last = stride;
    stride *= operands;
  }
  return {1.0 * steps + (fold.pairs > 0) + (fold.pairs > last), bytes * (partners + (fold.pairs > 0))};
}

Cost cost_of_doubling(const Shape& shape, double bytes) {
  return cost_of_multiplying({shape.ranks, shape.nodes, 2}, bytes);
}

Cost cost_of_halving(const Shape& shape, double bytes) {
  const Fold fold(shape.ranks, 2);
  const double steps = 2 * cost_of_doubling({fold.size}, 0).messages, share = 2.0 * (fold.size - 1) / fold.size;
  return {steps + 2 * (fold.pairs > 0), bytes * (share + (fold.pairs > 0))};
}

Cost cost_of_hierarchical(const Shape& shape, double bytes) {
  const int places = shape.ranks / shape.nodes;
  const bool halves = (shape.nodes & (shape.nodes - 1)) == 0;
  const Cost inside = cost_of_ring({places}, bytes);
  const Cost between = (halves ? cost_of_halving : cost_of_ring)({shape.nodes}, bytes / places);
  return {inside.messages + between.messages, inside.bytes + between.bytes};
}

Cost cost_of_leaders(const Shape& shape, double bytes) {
  if (shape.nodes == 1) return cost_of_multiplying(shape, bytes);
  const int places = shape.ranks / shape.nodes;
  int steps = 0, children = 0;                                                // of the tree; of its root
  for (long ones = 1; ones < places; ones = ones * shape.radix + 1) ++steps;  // 1, 11, 111, ... in base radix
  for (long stride = 1; stride < places; stride *= shape.radix)
    children += static_cast<int>(std::min<long>(shape.radix - 1, (places - 1) / stride));
  const Cost between = cost_of_multiplying({shape.nodes, 1, shape.radix}, bytes);
  return {2.0 * steps + between.messages, bytes * children + between.bytes};
}

constexpr Limits kNoLimits{};
constexpr Limits kCommutative{INT_MAX, false, true};
constexpr Uses kNeither{}, kRadix{true, false}, kLayout{false, true}, kBoth{true, true};

constexpr Algorithm kCatalogue[] = {
    {Collective::allreduce, "doubling", doubling_allreduce, kNoLimits, kNeither, cost_of_doubling,
     "recursive doubling: fewest messages, all bytes in each; small vectors"},
    {Collective::allreduce, "multiplying", multiplying_allreduce, kNoLimits, kRadix, cost_of_multiplying,
     "recursive multiplying, radix - 1 partners at once: fewer steps than doubling; small vectors, many ranks"},
    {Collective::allreduce, "halving", halving_allreduce, kNoLimits, kNeither, cost_of_halving,
     "recursive halving, then doubling: few bytes in few messages; middle-sized vectors, many ranks"},
    {Collective::allreduce, "ring", ring_allreduce, kCommutative, kNeither, cost_of_ring,
     "pipelined ring, reduce-scatter then allgather: fewest bytes, many messages; large vectors"},
    {Collective::allreduce, "leaders", leaders_allreduce, kCommutative, kBoth, cost_of_leaders,
     "tree to a leader in each node, recursive multiplying among leaders: fewest messages between nodes; small "
     "vectors"},
    {Collective::allreduce, "hierarchical", hierarchical_allreduce, kCommutative, kLayout, cost_of_hierarchical,
     "shards reduced in each node, then between nodes, pipelined: fewest bytes between nodes; large vectors"},
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
