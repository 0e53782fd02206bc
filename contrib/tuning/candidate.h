// Candidates: the ways to run one allreduce that are compared with each other. All come from the catalogue.
//
// Two candidates are the same to us when they give the same plans: a piece that is larger than all that is ever sent at
// once is as good as any larger one, and some algorithms are one for some numbers of ranks. So what matters is found by
// building plans, and written down nowhere.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "coll/layout.h"
#include "coll/selection.h"

namespace gpurdma::tuning {

// The job that is tuned for. Equal on all ranks.
struct Job {
  int ranks;
  std::shared_ptr<const Layout> layout = nullptr;  // nullptr: one node
  int nodes() const { return layout ? layout->nodes() : 1; }
};

struct Candidate {
  const Algorithm* algorithm;
  size_t piece;  // bytes
  int depth;
  int radix;
  bool operator==(const Candidate& other) const {
    return algorithm == other.algorithm && piece == other.piece && depth == other.depth && radix == other.radix;
  }
};

constexpr size_t kElementBytes = 4;  // all is measured with floats

std::string to_text(const Candidate& candidate);

// What this table chooses.
Candidate chosen(Span<const TuningRow> table, const Job& job, size_t bytes);

// A hash of the plans that the candidate gives for a vector of so many bytes.
uint64_t fingerprint(const Job& job, size_t bytes, const Candidate& candidate);

// Leaves of those with the same fingerprint the first.
std::vector<Candidate> distinct(const Job& job, size_t bytes, const std::vector<Candidate>& candidates);

// Every algorithm that can run with every radix; piece and depth are those of a row that gives none.
std::vector<Candidate> all_algorithms(const Job& job, size_t bytes);
// This one with other pieces that do not make too many of the vector, or with other depths; itself first.
std::vector<Candidate> with_pieces(const Job& job, size_t bytes, const Candidate& candidate);
std::vector<Candidate> with_depths(const Job& job, size_t bytes, const Candidate& candidate);

}  // namespace gpurdma::tuning
