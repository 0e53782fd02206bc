// Runs the plans of all ranks of a collective one after another, in program order, with messages that are never late:
// what an algorithm means, without an engine. (Whether it also runs under every order and delay is the simulator's
// question.)
//
// An element is a number, the history of its reductions, and the run of ranks that it stands for. The op adds the
// numbers, joins the histories so that neither the order of operands nor the grouping can be exchanged unnoticed, and
// joins the runs, where that of the right operand begins behind that of the left one (or again at rank 0).
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "plan/plan.h"

namespace gpurdma::test {

struct Element {
  uint64_t sum = 0;
  uint64_t history = 0;
  int first = -1, last = -1;  // ranks; -1: no run
};

inline uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 31)) * 0xbf58476d1ce4e5b9u;
  return value ^ (value >> 29);
}

inline Element apply(const Element& left, const Element& right) {
  const bool run = left.first >= 0 && (right.first == left.last + 1 || right.first == 0);
  return {left.sum + right.sum, mix(mix(left.history) + right.history), run ? left.first : -1, run ? right.last : -1};
}

struct Memory {  // of one rank
  std::vector<Element> input, output, scratch;
};

class Interpreter {
 public:
  // plans: sealed, of ranks 0, 1, ...; memory: as long as the plans need. Both must outlive the interpreter.
  Interpreter(const std::vector<Plan>& plans, std::vector<Memory>& memory) : plans_(plans), memory_(memory) {
    for (const Plan& plan : plans) {
      done_.push_back(0);
      direct_.emplace_back(plan.ops().size());
    }
  }

  // Whether all ranks came to their end and all messages were received.
  bool run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t rank = 0; rank < plans_.size(); ++rank) {
        while (done_[rank] < plans_[rank].ops().size() && step(rank, done_[rank])) ++done_[rank], moved = true;
      }
    }
    for (size_t rank = 0; rank < plans_.size(); ++rank) {
      if (done_[rank] < plans_[rank].ops().size()) return false;
    }
    for (const auto& [ends, queue] : messages_) {
      if (!queue.empty()) return false;
    }
    return true;
  }

 private:
  using Message = std::vector<Element>;
  struct Direct {  // a message left with its consumer, and where it would have been written
    const Slice* slice;
    Message message;
  };

  Element* at(int rank, const Slice& slice) {
    Memory& memory = memory_[rank];
    auto& buffer = slice.buf == Buf::input ? memory.input : slice.buf == Buf::output ? memory.output : memory.scratch;
    if (slice.at + slice.n > buffer.size()) throw std::out_of_range("slice outside its buffer");
    return buffer.data() + slice.at;
  }

  // A recv with a consumer leaves its message with the consumer, as the engine may; its slice is spoilt instead.
  bool step(int rank, uint32_t i) {
    const PlanOp& op = plans_[rank].ops()[i];
    const auto other = [&] { return plans_[rank].peers()[op.peer].rank; };
    switch (op.kind) {
      case PlanOp::Kind::send: {
        const Element* from = at(rank, op.a);
        messages_[{rank, other()}].emplace_back(from, from + op.a.n);
        return true;
      }
      case PlanOp::Kind::recv: {
        auto& queue = messages_[{other(), rank}];
        if (queue.empty()) return false;
        Message message = std::move(queue.front());
        queue.pop_front();
        if (message.size() != op.dst.n) throw std::length_error("message and recv differ in size");
        Element* to = at(rank, op.dst);
        if (op.consumer == Plan::kNone) {
          std::copy(message.begin(), message.end(), to);
        } else {
          std::fill(to, to + op.dst.n, Element{666, 666, -1, -1});
          direct_[rank][op.consumer].push_back({&op.dst, std::move(message)});
        }
        return true;
      }
      case PlanOp::Kind::copy:
        std::copy_n(at(rank, op.a), op.a.n, at(rank, op.dst));
        return true;
      case PlanOp::Kind::reduce: {
        const auto operand = [&](const Slice& s) -> const Element* {
          for (const Direct& direct : direct_[rank][i]) {
            if (s.buf == direct.slice->buf && s.at == direct.slice->at) return direct.message.data();
          }
          return at(rank, s);
        };
        const Element *left = operand(op.a), *right = operand(op.b);
        Element* to = at(rank, op.dst);
        for (size_t k = 0; k < op.dst.n; ++k) to[k] = apply(left[k], right[k]);
        return true;
      }
    }
    return false;
  }

  const std::vector<Plan>& plans_;
  std::vector<Memory>& memory_;
  std::vector<uint32_t> done_;
  std::vector<std::vector<std::vector<Direct>>> direct_;         // for each operation
  std::map<std::pair<int, int>, std::deque<Message>> messages_;  // from, to
};

}  // namespace gpurdma::test
