#include "coll/node_spec.h"

namespace gpurdma {
namespace {

constexpr uint32_t kMost = 1u << 24;
constexpr size_t kMostBlocks = 4096;

// A number from 1 to kMost; *words moves behind it. 0: there is none.
uint32_t take_number(const char** words) {
  uint32_t value = 0;
  for (; **words >= '0' && **words <= '9' && value <= kMost; ++*words) value = 10 * value + uint32_t(**words - '0');
  return value <= kMost ? value : 0;
}

}  // namespace

bool NodeSpec::parse(const char* words, NodeSpec* spec) {
  NodeSpec made;
  const char* at = words != nullptr ? words : "";
  made.modulo_ = *at == '%';
  if (made.modulo_) ++at;
  if (*at == '\0' && !made.modulo_) {
    *spec = made;
    return true;
  }
  for (;;) {
    const uint32_t number = take_number(&at);
    if (number == 0 || made.sizes_.size() == kMostBlocks) return false;
    made.sizes_.push_back(number);
    if (*at == '\0') break;
    if (*at != ',' || made.modulo_) return false;
    ++at;
  }
  *spec = std::move(made);
  return true;
}

uint32_t NodeSpec::node_of(uint32_t rank) const {
  if (modulo_) return rank % sizes_[0];
  uint32_t node = 0;
  for (; node + 1 < sizes_.size(); ++node) {
    if (rank < sizes_[node]) return node;
    rank -= sizes_[node];
  }
  return node + rank / sizes_[node];
}

std::vector<uint32_t> NodeSpec::nodes(int ranks) const {
  std::vector<uint32_t> nodes(static_cast<size_t>(ranks));
  for (uint32_t rank = 0; rank < nodes.size() && !empty(); ++rank) nodes[rank] = node_of(rank);
  return nodes;
}

}  // namespace gpurdma
