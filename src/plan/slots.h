// Slots: a window of scratch that incoming pieces pass through.
//
// Slots are used in turn. A recv into a slot waits until the slot's last user is done with it; that wait is all the
// flow control there is within a plan, and the number of slots is how many pieces may be on their way at once.
#pragma once
#include <vector>

#include "plan/plan.h"

namespace gpurdma {

class Slots {
 public:
  // At most `slots` slots of `piece` elements; scratch grows as they are first used.
  Slots(Plan& plan, size_t piece, size_t slots) : plan_(plan), piece_(piece), slots_(slots) {}

  // The next slot in turn, cut to n <= piece elements.
  Slice next(size_t n) {
    if (turn_ == at_.size() && turn_ < slots_) at_.push_back(plan_.scratch(piece_).at);
    if (turn_ == slots_) turn_ = 0;
    return {Buf::scratch, at_[turn_++], n};
  }

 private:
  Plan& plan_;
  size_t piece_, slots_;
  size_t turn_ = 0;
  std::vector<size_t> at_;  // of the slots used so far
};

}  // namespace gpurdma
