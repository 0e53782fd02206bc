#include "plan/cells.h"

#include <algorithm>

namespace gpurdma {

Cells::Cells(Span<const PlanOp> ops) {
  for (const PlanOp& op : ops) {
    for (const Slice* slice : {&op.dst, &op.a, &op.b}) {
      if (slice->n == 0 || slice->buf == Buf::input) continue;
      add(begin(*slice));
      add(begin(*slice) + slice->n);
    }
  }
  std::stable_sort(cuts_.begin(), cuts_.end());
  for (uint32_t cell = 0; cell < cuts_.size(); ++cell) find(cuts_[cell]).cell = cell;
}

Cells::Range Cells::range(const Slice& slice) const {
  const Cut end = begin(slice) + slice.n;
  const uint32_t first = find(begin(slice)).cell;
  return {first, cuts_[first + 1] == end ? first + 1 : find(end).cell};  // most slices are one cell
}

// The cut's entry, or the empty one where it belongs.
Cells::Entry& Cells::find(Cut cut) {
  const size_t mask = table_.size() - 1;
  size_t i = (cut * 0x9e3779b97f4a7c15u) >> shift_;
  while (table_[i].cut != cut && table_[i].cut != kEmpty) i = (i + 1) & mask;
  return table_[i];
}

void Cells::add(Cut cut) {
  Entry& entry = find(cut);
  if (entry.cut == cut) return;
  entry.cut = cut;
  cuts_.push_back(cut);
  if (2 * cuts_.size() > table_.size()) grow();
}

void Cells::grow() {
  --shift_;
  table_.assign(size_t{1} << (64 - shift_), Entry{kEmpty, 0});
  for (Cut cut : cuts_) find(cut).cut = cut;
}

}  // namespace gpurdma
