#include "coll/tree.h"

#include <algorithm>

#include "plan/blocks.h"
#include "plan/slots.h"

namespace gpurdma {
namespace {

// Our place in the tree. Our children are place + i * stride, for strides below `top` and i from 1 to radix - 1.
struct Node {
  int place, size, radix;
  long top = 1;     // the weight of our last digit other than 0; of the root, beyond all places
  int parent = -1;  // -1: we are the root

  Node(const Group& group, int radix) : place(group.place()), size(group.size()), radix(radix) {
    while (top < size && place / top % radix == 0) top *= radix;
    if (place > 0) parent = static_cast<int>(place - place / top % radix * top);
  }

  // Calls f(child) for the children at one stride, in increasing order.
  template <class F>
  void for_children(long stride, F f) const {
    for (int i = 1; i < radix && place + i * stride < size; ++i) f(static_cast<int>(place + i * stride));
  }
};

}  // namespace

void tree_reduce(Plan& plan, const Group& group, Buf own, size_t count, Tuning tuning) {
  const Node node(group, tuning.radix);
  const size_t piece = std::min(tuning.piece, count);
  const int partners = std::min(tuning.radix, group.size()) - 1;
  Slots slots(plan, piece, static_cast<size_t>(tuning.depth) * static_cast<size_t>(partners));
  for_pieces(0, count, piece, [&](size_t at, size_t n) {
    Slice sum{own, at, n};
    for (long stride = 1; stride < node.top; stride *= node.radix) {
      node.for_children(stride, [&](int child) {
        const Slice theirs = slots.next(n);
        plan.recv(theirs, group.rank(child));
        plan.reduce({Buf::output, at, n}, sum, theirs);
        sum.buf = Buf::output;
      });
    }
    if (node.parent >= 0) plan.send(group.rank(node.parent), sum);
  });
}

void tree_broadcast(Plan& plan, const Group& group, size_t count, Tuning tuning) {
  const Node node(group, tuning.radix);
  for_pieces(0, count, std::min(tuning.piece, count), [&](size_t at, size_t n) {
    const Slice result{Buf::output, at, n};
    if (node.parent >= 0) plan.recv(result, group.rank(node.parent));
    for (long stride = node.top / node.radix; stride > 0; stride /= node.radix) {
      node.for_children(stride, [&](int child) { plan.send(group.rank(child), result); });
    }
  });
}

}  // namespace gpurdma
