#include "coll/doubling.h"

#include <algorithm>

#include "plan/blocks.h"
#include "plan/slots.h"

namespace gpurdma {
namespace {

// Which places take part in the exchanges, renumbered without gaps.
struct Core {
  int size;   // a power of two
  int pairs;  // the first 2 * pairs places fold into `pairs` members of the core, the odd ones

  explicit Core(int places) : size(1) {
    while (size <= places / 2) size *= 2;
    pairs = places - size;
  }
  bool paired(int place) const { return place < 2 * pairs; }
  int member(int place) const { return paired(place) ? place / 2 : place - pairs; }
  int place(int member) const { return member < pairs ? 2 * member + 1 : member + pairs; }
};

}  // namespace

void doubling_allreduce(Plan& plan, const Group& group, const Call& call, Tuning tuning) {
  if (group.size() == 1) {
    if (!call.in_place) plan.copy({Buf::output, 0, call.count}, {Buf::input, 0, call.count});
    return;
  }
  const Core core(group.size());
  const int place = group.place();
  const size_t piece = std::min(tuning.piece, call.count);
  const auto all_pieces = [&](auto f) { for_pieces(0, call.count, piece, f); };

  // An even one of a pair: the odd one works for both.
  if (core.paired(place) && place % 2 == 0) {
    const int partner = group.rank(place + 1);
    all_pieces([&](size_t at, size_t n) { plan.send(partner, {call.own(), at, n}); });
    all_pieces([&](size_t at, size_t n) { plan.recv({Buf::output, at, n}, partner); });
    return;
  }

  // `depth` slots for each of two consecutive partners: a step's recv need not wait for the step before.
  Slots slots(plan, piece, 2 * static_cast<size_t>(tuning.depth));
  Buf mine = call.own();  // where our partial result is
  const auto reduce_with = [&](int partner, size_t at, size_t n) {
    const Slice ours{mine, at, n}, theirs = slots.next(n);
    plan.recv(theirs, group.rank(partner));
    if (partner < place) {
      plan.reduce({Buf::output, at, n}, theirs, ours);
    } else {
      plan.reduce({Buf::output, at, n}, ours, theirs);
    }
  };

  if (core.paired(place)) {
    all_pieces([&](size_t at, size_t n) { reduce_with(place - 1, at, n); });
    mine = Buf::output;
  }
  for (int bit = 1; bit < core.size; bit *= 2) {
    const int partner = core.place(core.member(place) ^ bit);
    all_pieces([&](size_t at, size_t n) {
      plan.send(group.rank(partner), {mine, at, n});
      reduce_with(partner, at, n);
    });
    mine = Buf::output;
  }
  if (core.paired(place)) {
    all_pieces([&](size_t at, size_t n) { plan.send(group.rank(place - 1), {Buf::output, at, n}); });
  }
}

}  // namespace gpurdma
