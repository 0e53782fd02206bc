#include "plan/dependencies.h"

#include "plan/cells.h"

namespace gpurdma {
namespace {

constexpr uint32_t kNone = Plan::kNone;
constexpr uint32_t kNoConsumer = Plan::kNone - 1;  // while deriving: read, but not by one reduce alone

bool same(const Slice& x, const Slice& y) { return x.buf == y.buf && x.at == y.at && x.n == y.n; }

bool overlap(const Slice& x, const Slice& y) { return x.buf == y.buf && x.at < y.at + y.n && y.at < x.at + x.n; }

class Derivation {
 public:
  explicit Derivation(Span<PlanOp> ops)
      : ops_(ops), cells_({ops.data(), ops.size()}), states_(cells_.count()), waited_for_by_(ops.size(), kNone) {
    result_.waits.reserve(ops.size());
    result_.earlier.reserve(2 * ops.size());
    readers_.reserve(2 * ops.size());
  }

  Dependencies run() {
    for (now_ = 0; now_ < ops_.size(); ++now_) {
      const size_t before = result_.earlier.size();
      waited_for_by_[now_] = now_;
      const PlanOp& op = ops_[now_];
      if (op.a.n > 0) read(op.a);
      if (op.b.n > 0) read(op.b);
      if (op.dst.n > 0) write(op.dst);
      result_.waits.push_back(static_cast<uint32_t>(result_.earlier.size() - before));
    }
    for (PlanOp& op : ops_) {
      if (op.consumer == kNoConsumer) op.consumer = kNone;
    }
    return std::move(result_);
  }

 private:
  struct Reader {  // lists grow at their head and are dropped whole
    uint32_t op, next;
  };
  struct State {  // of a cell
    uint32_t writer = kNone;
    uint32_t readers = kNone;  // since it was written: head of a list in readers_
  };

  void wait_for(uint32_t op) {
    if (op == kNone || waited_for_by_[op] == now_) return;
    waited_for_by_[op] = now_;
    result_.earlier.push_back(op);
  }

  void read(const Slice& slice) {
    if (slice.buf == Buf::input) return;
    const auto [first, last] = cells_.range(slice);
    const uint32_t writer = states_[first].writer;
    bool one_writer = true;
    for (uint32_t i = first; i < last; ++i) {
      State& cell = states_[i];
      wait_for(cell.writer);
      one_writer &= cell.writer == writer;
      readers_.push_back({now_, cell.readers});
      cell.readers = static_cast<uint32_t>(readers_.size() - 1);
    }
    if (one_writer && writer != kNone && consumes(slice, ops_[writer])) {
      ops_[writer].consumer = now_;
      return;
    }
    if (one_writer && writer != kNone && forwards(slice, ops_[writer])) {
      ops_[writer].consumer = now_;
      return;
    }
    for (uint32_t i = first; i < last; ++i) {
      if (states_[i].writer != kNone && ops_[states_[i].writer].kind == PlanOp::Kind::recv)
        ops_[states_[i].writer].consumer = kNoConsumer;
    }
  }

  // Whether the operation at hand may become the one consumer of what `writer` wrote, reading all of it as `slice`.
  bool consumes(const Slice& slice, const PlanOp& writer) const {
    const PlanOp& op = ops_[now_];
    return writer.kind == PlanOp::Kind::recv && writer.consumer == kNone && op.kind == PlanOp::Kind::reduce &&
           slice.buf == Buf::scratch && same(slice, writer.dst) && !overlap(slice, op.dst);
  }

  // Whether the operation at hand is the first send of all that the reduce `writer` wrote.
  bool forwards(const Slice& slice, const PlanOp& writer) const {
    return writer.kind == PlanOp::Kind::reduce && writer.consumer == kNone && ops_[now_].kind == PlanOp::Kind::send &&
           same(slice, writer.dst);
  }

  void write(const Slice& slice) {
    const auto [first, last] = cells_.range(slice);
    for (uint32_t i = first; i < last; ++i) {
      State& cell = states_[i];
      if (cell.readers == kNone) wait_for(cell.writer);
      for (uint32_t r = cell.readers; r != kNone; r = readers_[r].next) wait_for(readers_[r].op);
      cell = {now_, kNone};
    }
  }

  Span<PlanOp> ops_;
  const Cells cells_;
  std::vector<State> states_;
  std::vector<Reader> readers_;
  std::vector<uint32_t> waited_for_by_;  // for each operation, the last one that waits for it
  uint32_t now_ = 0;                     // the operation at hand
  Dependencies result_;
};

}  // namespace

Dependencies derive_dependencies(Span<PlanOp> ops) { return Derivation(ops).run(); }

}  // namespace gpurdma
