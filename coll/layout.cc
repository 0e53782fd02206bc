#include "coll/layout.h"

#include <algorithm>

namespace gpurdma {

Layout::Layout(Span<const uint32_t> nodes) {
  std::unordered_map<uint32_t, int> numbers;
  node_of_.reserve(nodes.size());
  for (uint32_t node : nodes)
    node_of_.push_back(numbers.insert({node, static_cast<int>(numbers.size())}).first->second);

  first_.assign(numbers.size() + 1, 0);
  for (int node : node_of_) ++first_[node + 1];
  smallest_ = *std::min_element(first_.begin() + 1, first_.end());
  for (size_t node = 1; node < first_.size(); ++node) first_[node] += first_[node - 1];

  members_.resize(nodes.size());
  std::vector<int> next(first_);
  for (int place = 0; place < places(); ++place) members_[next[node_of_[place]]++] = place;
}

int Layout::index(int place) const {
  const Span<const int> node = members(node_of(place));
  return static_cast<int>(std::lower_bound(node.begin(), node.end(), place) - node.begin());
}

uint64_t Layout::hash() const {
  uint64_t hash = node_of_.size();
  for (int node : node_of_) {
    hash = (hash ^ static_cast<uint64_t>(node)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return hash;
}

std::vector<int> ranks_of(const Group& group, Span<const int> places) {
  std::vector<int> ranks;
  for (int place : places) ranks.push_back(group.rank(place));
  return ranks;
}

std::shared_ptr<const Layout> Layouts::intern(Span<const uint32_t> nodes) {
  if (std::all_of(nodes.begin(), nodes.end(), [&](uint32_t node) { return node == nodes[0]; })) return nullptr;
  auto made = std::make_unique<const Layout>(nodes);
  const uint64_t hash = made->hash();
  const auto [begin, end] = known_.equal_range(hash);
  for (auto entry = begin; entry != end; ++entry) {
    if (entry->second->node_of_ == made->node_of_) return entry->second->shared_from_this();
  }
  known_.insert({hash, made.get()});
  return {made.release(), [this](const Layout* layout) {
            forget(layout);
            delete layout;
          }};
}

void Layouts::forget(const Layout* layout) {
  const auto [begin, end] = known_.equal_range(layout->hash());
  known_.erase(std::find_if(begin, end, [&](const auto& entry) { return entry.second == layout; }));
}

}  // namespace gpurdma
