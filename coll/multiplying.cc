#include "coll/multiplying.h"

#include <algorithm>

#include "coll/fold.h"
#include "plan/blocks.h"
#include "plan/slots.h"

namespace gpurdma {
namespace {

// One step of one piece: we hold operand number `own` in `mine`, each partner another one, and all are joined in order.
struct Joint {
  Plan& plan;
  Slots& slots;  // for what comes
  Slots& sums;   // for what is joined while our own operand is still to come: it may lie where the result goes

  template <class RankOf>
  void join(int operands, int own, const Slice& mine, RankOf rank_of) {
    for (int i = 1; i < operands; ++i) plan.send(rank_of((own + i) % operands), mine);
    const Slice output{Buf::output, mine.at, mine.n};
    const auto operand = [&](int i) {
      if (i == own) return mine;
      const Slice theirs = slots.next(mine.n);
      plan.recv(theirs, rank_of(i));
      return theirs;
    };
    Slice sum = operand(0);
    const Slice lower = own > 1 ? sums.next(mine.n) : output;  // the sum of operands below our own
    for (int i = 1; i < operands; ++i) {
      const Slice next = operand(i), joined = i < own ? lower : output;
      plan.reduce(joined, sum, next);
      sum = joined;
    }
  }
};

}  // namespace

void multiplying_exchange(Plan& plan, const Group& group, Buf mine, size_t count, Tuning tuning) {
  const Fold fold(group.size(), tuning.radix);
  const size_t piece = std::min(tuning.piece, count);
  const auto pieces = [&](auto f) { for_pieces(0, count, piece, f); };
  // `depth` slots for each partner of two consecutive steps: a step's recv need not wait for the step before.
  const size_t window = 2 * static_cast<size_t>(tuning.depth);
  Slots slots(plan, piece, window * static_cast<size_t>(std::min(tuning.radix, fold.size) - 1));
  Slots sums(plan, piece, window);

  fold_in(plan, group, fold, mine, slots, pieces);
  if (fold.paired(group.place())) mine = Buf::output;
  const int member = fold.member(group.place());
  Joint joint{plan, slots, sums};
  for (int stride = 1; stride < fold.size && !fold.resting(group.place());) {
    const int operands = std::min(tuning.radix, fold.size / stride);
    const int own = member / stride % operands;
    const auto rank_of = [&](int i) { return group.rank(fold.place(member + (i - own) * stride)); };
    pieces([&](size_t at, size_t n) { joint.join(operands, own, {mine, at, n}, rank_of); });
    mine = Buf::output;
    stride *= operands;
  }
  fold_out(plan, group, fold, pieces);
}

void multiplying_allreduce(Plan& plan, const Group& group, const Call& call, Tuning tuning) {
  if (group.size() == 1) return keep_own(plan, call);
  multiplying_exchange(plan, group, call.own(), call.count, tuning);
}

void doubling_allreduce(Plan& plan, const Group& group, const Call& call, Tuning tuning) {
  tuning.radix = 2;
  multiplying_allreduce(plan, group, call, tuning);
}

}  // namespace gpurdma
