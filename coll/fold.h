// Fold: how an exchange that wants a certain number of members runs among any number of places.
//
// The surplus places and as many others form pairs, the first ones of the group: an even place hands its contribution
// to the odd one behind it, which works for both as one member, and gets the result at the end. Members keep the order
// of the places, and a pair is two neighbours, so that ops that are associative only are served.
#pragma once
#include <vector>

#include "coll/algorithm.h"
#include "plan/slots.h"

namespace gpurdma {

struct Fold {
  int size;   // members: the largest radix^k * j, with j < radix, that is not above the number of places
  int pairs;  // the first 2 * pairs places; pairs <= size, and 0 where nothing has to be folded

  Fold(int places, int radix) : size(1) {
    while (size <= places / radix) size *= radix;
    size *= places / size;
    pairs = places - size;
  }
  bool paired(int place) const { return place < 2 * pairs; }
  bool resting(int place) const { return paired(place) && place % 2 == 0; }
  int member(int place) const { return paired(place) ? place / 2 : place - pairs; }
  int place(int member) const { return member < pairs ? 2 * member + 1 : member + pairs; }

  std::vector<int> ranks(const Group& group) const {
    std::vector<int> ranks(size);
    for (int i = 0; i < size; ++i) ranks[i] = group.rank(place(i));
    return ranks;
  }
};

// Before the exchange. Where the place is paired() and not resting(), its partial result is then in output. pieces: is
// called with a function f(at, n), which it calls for every piece of the vector.
template <class Pieces>
void fold_in(Plan& plan, const Group& group, const Fold& fold, Buf own, Slots& slots, Pieces pieces) {
  const int place = group.place();
  if (!fold.paired(place)) return;
  if (fold.resting(place)) {
    pieces([&](size_t at, size_t n) { plan.send(group.rank(place + 1), {own, at, n}); });
    return;
  }
  pieces([&](size_t at, size_t n) {
    const Slice theirs = slots.next(n);
    plan.recv(theirs, group.rank(place - 1));
    plan.reduce({Buf::output, at, n}, theirs, {own, at, n});
  });
}

// After it: the result is in output.
template <class Pieces>
void fold_out(Plan& plan, const Group& group, const Fold& fold, Pieces pieces) {
  const int place = group.place();
  if (!fold.paired(place)) return;
  if (fold.resting(place)) {
    pieces([&](size_t at, size_t n) { plan.recv({Buf::output, at, n}, group.rank(place + 1)); });
  } else {
    pieces([&](size_t at, size_t n) { plan.send(group.rank(place - 1), {Buf::output, at, n}); });
  }
}

}  // namespace gpurdma
