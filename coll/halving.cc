#include "coll/halving.h"

#include <algorithm>

#include "coll/chunks.h"
#include "coll/fold.h"

namespace gpurdma {
namespace {

// Consecutive blocks [first, last): a power of two of them, and first a multiple of their number.
struct Run {
  int first, last;

  int size() const { return last - first; }
  Run lower() const { return {first, first + size() / 2}; }
  Run upper() const { return {first + size() / 2, last}; }
};

// Calls f(at, n) for a run in messages: as many blocks as fit a piece, a power of two, so that cuts of a long run are
// cuts of its halves; or each block in pieces.
template <class F>
void for_messages(const Blocks& blocks, Run run, size_t piece, F f) {
  int unit = 1;
  while (unit < run.size() && 2 * unit * blocks.largest() <= piece) unit *= 2;
  for (int i = run.first; i < run.last; i += unit) {
    for_pieces(blocks.at(i), blocks.at(i + unit) - blocks.at(i), piece, f);
  }
}

}  // namespace

void halving_reduce_scatter(Plan& plan, const Group& group, const Blocks& blocks, Buf own, size_t piece, Slots& slots) {
  Run run{0, group.size()};
  Buf mine = own;
  for (int bit = 1; bit < group.size(); bit *= 2) {
    const bool is_upper = (group.place() & bit) != 0;
    const int partner = group.rank(group.place() ^ bit);
    for_messages(blocks, is_upper ? run.lower() : run.upper(), piece, [&](size_t at, size_t n) {
      plan.send(partner, {mine, at, n});
    });
    run = is_upper ? run.upper() : run.lower();
    for_messages(blocks, run, piece, [&](size_t at, size_t n) {
      const Slice ours{mine, at, n}, theirs = slots.next(n);
      plan.recv(theirs, partner);
      plan.reduce({Buf::output, at, n}, is_upper ? theirs : ours, is_upper ? ours : theirs);
    });
    mine = Buf::output;
  }
}

void doubling_allgather(Plan& plan, const Group& group, const Blocks& blocks, size_t piece) {
  Run run{0, group.size()};  // what we end with; halved to what we begin with
  for (int bit = 1; bit < group.size(); bit *= 2) run = group.place() & bit ? run.upper() : run.lower();
  for (int bit = group.size() / 2; bit > 0; bit /= 2) {
    const bool is_upper = (group.place() & bit) != 0;
    const int partner = group.rank(group.place() ^ bit);
    const int other = is_upper ? run.first - run.size() : run.last;
    for_messages(blocks, run, piece, [&](size_t at, size_t n) { plan.send(partner, {Buf::output, at, n}); });
    for_messages(blocks, {other, other + run.size()}, piece, [&](size_t at, size_t n) {
      plan.recv({Buf::output, at, n}, partner);
    });
    run = {std::min(run.first, other), std::max(run.last, other + run.size())};
  }
}

void halving_allreduce(Plan& plan, const Group& group, const Call& call, Tuning tuning) {
  if (group.size() == 1) return keep_own(plan, call);
  const Fold fold(group.size(), 2);
  const std::vector<int> ranks = fold.ranks(group);
  const Group members(fold.member(group.place()), {ranks.data(), ranks.size()});
  const bool resting = fold.resting(group.place());
  const Buf mine = fold.paired(group.place()) ? Buf::output : call.own();

  const size_t piece = std::min(tuning.piece, call.count);
  const size_t depth = static_cast<size_t>(tuning.depth);
  const size_t largest = Blocks(0, call.count, fold.size).largest();
  const size_t window = std::min(largest, piece * depth);
  Slots slots(plan, piece, 2 * depth);  // for two consecutive partners: a step's recv need not wait for the step before
  in_chunks(
      call.count, window * fold.size,
      [&](size_t at, size_t n) {
        const Blocks blocks(at, n, fold.size);
        const auto pieces = [&](auto f) { for_messages(blocks, {0, fold.size}, piece, f); };
        fold_in(plan, group, fold, call.own(), slots, pieces);
        if (!resting) halving_reduce_scatter(plan, members, blocks, mine, piece, slots);
      },
      [&](size_t at, size_t n) {
        const Blocks blocks(at, n, fold.size);
        if (!resting) doubling_allgather(plan, members, blocks, piece);
        fold_out(plan, group, fold, [&](auto f) { for_messages(blocks, {0, fold.size}, piece, f); });
      });
}

}  // namespace gpurdma
