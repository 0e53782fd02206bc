#include "plan/print.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace gpurdma {
namespace {

std::string to_text(const PlanOp& op, const Plan& plan) {
  const auto message = [&] {
    return std::to_string(plan.peers()[op.peer].rank) + ", message " + std::to_string(op.position);
  };
  switch (op.kind) {
    case PlanOp::Kind::send:
      return "send    " + to_text(op.a) + " to " + message();
    case PlanOp::Kind::recv:
      return "recv    " + to_text(op.dst) + " from " + message() +
             (op.consumer != Plan::kNone ? ", read by " + std::to_string(op.consumer) : "");
    case PlanOp::Kind::copy:
      return "copy    " + to_text(op.dst) + " = " + to_text(op.a);
    case PlanOp::Kind::reduce:
      return "reduce  " + to_text(op.dst) + " = " + to_text(op.a) + " op " + to_text(op.b);
  }
  return "";
}

}  // namespace

std::string to_text(const Slice& slice) {
  static constexpr const char* kNames[] = {"input", "output", "scratch"};
  std::string text = kNames[static_cast<int>(slice.buf)];
  text += "[" + std::to_string(slice.at);
  if (slice.n > 1) text += ".." + std::to_string(slice.at + slice.n - 1);
  return text + "]";
}

std::string to_text(const Plan& plan) {
  const Span<const PlanOp> ops = plan.ops();
  std::vector<std::string> lines, after(ops.size());
  size_t width = 0;
  for (uint32_t i = 0; i < ops.size(); ++i) {
    lines.push_back(to_text(ops[i], plan));
    width = std::max(width, lines.back().size());
    for (uint32_t later : plan.successors(i)) after[later] += " " + std::to_string(i);
  }

  std::string text;
  for (size_t i = 0; i < ops.size(); ++i) {
    char number[24];
    std::snprintf(number, sizeof number, "%6zu  ", i);
    text += number + lines[i];
    if (!after[i].empty()) text += std::string(width - lines[i].size() + 3, ' ') + "after" + after[i];
    text += "\n";
  }
  return text;
}

}  // namespace gpurdma
