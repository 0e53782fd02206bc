// Layout: which node each place of a group is on. Equal on all ranks, so that algorithms may depend on it.
//
// Nodes are numbered by their first place. They may have different numbers of places, and those of one node need not
// be next to each other. A layout never changes once made.
#pragma once
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/span.h"
#include "coll/algorithm.h"

namespace gpurdma {

class Layout : public std::enable_shared_from_this<Layout> {
 public:
  // nodes: for each place a number, equal where the node is the same.
  explicit Layout(Span<const uint32_t> nodes);

  int places() const { return static_cast<int>(node_of_.size()); }
  int nodes() const { return static_cast<int>(first_.size()) - 1; }
  int node_of(int place) const { return node_of_[place]; }
  // The places of a node, in increasing order.
  Span<const int> members(int node) const {
    return {members_.data() + first_[node], static_cast<size_t>(first_[node + 1] - first_[node])};
  }
  // The place is members(node_of(place))[index(place)].
  int index(int place) const;
  int smallest() const { return smallest_; }  // places of the node that has fewest

 private:
  friend class Layouts;
  uint64_t hash() const;

  std::vector<int> node_of_;  // by place
  std::vector<int> members_;  // places, node by node
  std::vector<int> first_;    // for each node, where its places begin in members_; and the end
  int smallest_;
};

// The ranks of some places of a group.
std::vector<int> ranks_of(const Group& group, Span<const int> places);

// The layouts in use, each once: equal ones are one object, so that any number of communicators share it, and plans are
// found by its address. Shared, since communicators and cached plans need it and either may be the last to go. The
// table must outlive what it gave out. Not thread-safe: the engine's lock protects it.
class Layouts {
 public:
  // nullptr where all places are on one node.
  std::shared_ptr<const Layout> intern(Span<const uint32_t> nodes);
  size_t size() const { return known_.size(); }

 private:
  void forget(const Layout* layout);

  std::unordered_multimap<uint64_t, const Layout*> known_;  // by hash
};

}  // namespace gpurdma
