// NodeSpec: a layout in words, for tests and tools that pretend nodes on one machine.
//
//   "4"      blocks of 4 consecutive ranks each       "3,1,2"  blocks of these sizes, the last one repeated
//   "%4"     rank r is on node r modulo 4             ""       the real nodes: none is pretended
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpurdma {

class NodeSpec {
 public:
  // Whether the words make sense; *spec is set only then. nullptr is as good as "".
  static bool parse(const char* words, NodeSpec* spec);

  bool empty() const { return sizes_.empty(); }
  // Of what parse() took, not empty.
  uint32_t node_of(uint32_t rank) const;
  // Of ranks 0, 1, ..., as Layout wants them; one node where the spec is empty.
  std::vector<uint32_t> nodes(int ranks) const;

 private:
  bool modulo_ = false;
  std::vector<uint32_t> sizes_;  // of blocks; modulo: the one number
};

}  // namespace gpurdma
