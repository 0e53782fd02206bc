#include "contrib/tuning/candidate.h"

#include <algorithm>
#include <set>

#include "coll/tuning_file.h"

namespace gpurdma::tuning {
namespace {

Choice choice_of(Span<const TuningRow> table, const Job& job, size_t bytes, const Forced& forced) {
  return select(table, {Collective::allreduce, job.ranks, job.nodes(), bytes, kElementBytes}, forced);
}

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

uint64_t mix(uint64_t hash, const Slice& slice) { return mix(mix(mix(hash, uint64_t(slice.buf)), slice.at), slice.n); }

// Which slices an operation has; the others of it are not set.
uint64_t mix(uint64_t hash, const PlanOp& op) {
  hash = mix(hash, uint64_t(op.kind));
  if (op.kind == PlanOp::Kind::send || op.kind == PlanOp::Kind::recv) hash = mix(hash, op.peer);
  if (op.kind != PlanOp::Kind::send) hash = mix(hash, op.dst);
  if (op.kind != PlanOp::Kind::recv) hash = mix(hash, op.a);
  if (op.kind == PlanOp::Kind::reduce) hash = mix(hash, op.b);
  return hash;
}

}  // namespace

std::string to_text(const Candidate& candidate) {
  TuningRow row;
  row.algorithm = candidate.algorithm;
  row.piece = candidate.piece;
  row.depth = candidate.depth;
  row.radix = candidate.radix;
  const std::string line = to_line(row);
  return line.substr(line.find(candidate.algorithm->name));
}

Candidate chosen(Span<const TuningRow> table, const Job& job, size_t bytes) {
  const Choice choice = choice_of(table, job, bytes, {});
  return {choice.algorithm, choice.tuning.piece * kElementBytes, choice.tuning.depth, choice.tuning.radix};
}

uint64_t fingerprint(const Job& job, size_t bytes, const Candidate& candidate) {
  constexpr int kMostRanks = 16;  // those behind them do the like
  const Choice choice =
      choice_of(builtin_tuning(), job, bytes, {candidate.algorithm, candidate.piece, candidate.depth, candidate.radix});
  uint64_t hash = 1;
  for (int rank = 0; rank < std::min(job.ranks, kMostRanks); ++rank) {
    Plan plan(rank, job.ranks);
    choice.algorithm->build(plan, Group(rank, job.ranks, job.layout.get()), {bytes / kElementBytes, false, 0},
                            choice.tuning);
    plan.seal();
    for (const PlanOp& op : plan.ops()) hash = mix(hash, op);
    hash = mix(hash, plan.scratch_elements());
  }
  return hash;
}

std::vector<Candidate> distinct(const Job& job, size_t bytes, const std::vector<Candidate>& candidates) {
  std::set<uint64_t> seen;
  std::vector<Candidate> left;
  for (const Candidate& candidate : candidates)
    if (seen.insert(fingerprint(job, bytes, candidate)).second) left.push_back(candidate);
  return left;
}

std::vector<Candidate> all_algorithms(const Job& job, size_t bytes) {
  const TuningRow usual;
  std::vector<Candidate> all;
  for (const Algorithm& algorithm : catalogue()) {
    if (algorithm.collective != Collective::allreduce || !algorithm.takes(job.ranks)) continue;
    for (const int radix : {2, 3, 4, 5, 6, 8, 16, 32, 64})
      if (radix == 2 || (radix <= job.ranks && algorithm.uses.radix))
        all.push_back({&algorithm, usual.piece, usual.depth, radix});
  }
  return distinct(job, bytes, all);
}

std::vector<Candidate> with_pieces(const Job& job, size_t bytes, const Candidate& candidate) {
  constexpr size_t kMost = 8192;  // pieces of one vector
  std::vector<Candidate> all = {candidate};
  for (size_t piece = 4 << 10; piece <= 1 << 20; piece *= 2) {
    if (bytes / piece > kMost) continue;
    all.push_back(candidate);
    all.back().piece = piece;
  }
  return distinct(job, bytes, all);
}

std::vector<Candidate> with_depths(const Job& job, size_t bytes, const Candidate& candidate) {
  std::vector<Candidate> all = {candidate};
  for (const int depth : {2, 4, 8, 16, 32}) {
    all.push_back(candidate);
    all.back().depth = depth;
  }
  return distinct(job, bytes, all);
}

}  // namespace gpurdma::tuning
