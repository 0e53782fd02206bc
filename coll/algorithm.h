// What an algorithm is: a pure function that records a plan, and one row in the catalogue.
//
// An algorithm knows ranks, element counts and slices. It knows nothing of memory kinds, transports, datatypes or
// progress, and contains no wait. To add one: write the function, add its row to catalogue.cc; selection, the
// simulator, the tests and the benches draw from there.
#pragma once
#include "base/span.h"
#include "plan/plan.h"

namespace gpurdma {

class Layout;  // coll/layout.h

// The ranks that take part, in order, and our place among them. Algorithms address places; rank() turns a place into a
// rank of the communicator, so the same code runs among all ranks, those of a node, or the leaders of nodes.
class Group {
 public:
  Group(int place, int size, const Layout* layout)  // all ranks; layout: where their places are, not owned
      : place_(place), size_(size), layout_(layout) {}
  Group(int place, int size, int first = 0, int stride = 1)  // ranks first, first + stride, ...
      : place_(place), size_(size), first_(first), stride_(stride) {}
  Group(int place, Span<const int> ranks)  // any list; not owned
      : place_(place), size_(static_cast<int>(ranks.size())), ranks_(ranks.data()) {}

  int place() const { return place_; }
  int size() const { return size_; }
  const Layout* layout() const { return layout_; }  // nullptr: all places are on one node, as far as is known
  int rank(int place) const { return ranks_ != nullptr ? ranks_[place] : first_ + place * stride_; }

 private:
  int place_, size_;
  int first_ = 0, stride_ = 1;
  const int* ranks_ = nullptr;
  const Layout* layout_ = nullptr;
};

struct Call {
  size_t count;   // elements
  bool in_place;  // our contribution is in output
  int root;       // collectives without a root ignore it
  Buf own() const { return in_place ? Buf::output : Buf::input; }
};

// Equal on all ranks. piece: most elements in one message, >= 1. depth: scratch slots per neighbour, >= 1. radix: of
// algorithms that exchange with radix - 1 partners in a step, >= 2; others ignore it.
struct Tuning {
  size_t piece;
  int depth;
  int radix = 2;
};

using Build = void (*)(Plan& plan, const Group& group, const Call& call, Tuning tuning);

// What an allreduce of a group of one is.
inline void keep_own(Plan& plan, const Call& call) {
  if (!call.in_place) plan.copy({Buf::output, 0, call.count}, {Buf::input, 0, call.count});
}

}  // namespace gpurdma
