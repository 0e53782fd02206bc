// Cells: two buffers cut wherever a slice of a plan begins or ends, so that every slice is a run of whole cells.
//
// Overlap of slices becomes equality of cell numbers. Output and scratch are laid on one line, scratch behind output;
// input is never written, so nothing that reads it has to wait, and it has no cells.
#pragma once
#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace gpurdma {

class Cells {
 public:
  // Cost: linear in the slices, plus a sort of the distinct cuts.
  explicit Cells(Span<const PlanOp> ops);

  struct Range {  // cells [first, last)
    uint32_t first, last;
  };
  // slice: one of the plan's, not of input. Constant cost.
  Range range(const Slice& slice) const;
  size_t count() const { return cuts_.size(); }

 private:
  using Cut = uint64_t;  // a place on the line
  struct Entry {
    Cut cut;
    uint32_t cell;  // that begins there
  };

  static Cut begin(const Slice& slice) { return slice.at | (slice.buf == Buf::scratch ? kScratch : 0); }
  Entry& find(Cut cut);
  const Entry& find(Cut cut) const { return const_cast<Cells*>(this)->find(cut); }
  void add(Cut cut);
  void grow();

  static constexpr Cut kScratch = Cut{1} << 63;
  static constexpr Cut kEmpty = UINT64_MAX;

  std::vector<Cut> cuts_;
  std::vector<Entry> table_ = std::vector<Entry>(64, Entry{kEmpty, 0});  // open addressing, at most half full
  int shift_ = 64 - 6;                                                   // 64 - log2 of the table's size
};

}  // namespace gpurdma
