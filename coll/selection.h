// Selection: which algorithm runs a call, in pieces of which size, through how many slots, with which radix.
//
// A table of rows says so: rows of a tuning file first, where there is one, then the built-in ones. The first row that
// fits applies, and a forced setting overrides any part of it. Everything depends on values that are equal on all
// ranks: the collective, the ranks, the nodes they are on and whether they have GPUs, the bytes of the vector, and
// settings that all ranks agreed on.
#pragma once
#include <cstdint>
#include <vector>

#include "coll/catalogue.h"

namespace gpurdma {

// Both ends included.
struct Range {
  size_t from = 0, to = SIZE_MAX;
  bool holds(size_t value) const { return from <= value && value <= to; }
};

// tuning_file.h says how a row is written.
struct TuningRow {
  Collective collective = Collective::allreduce;
  Range ranks{1, SIZE_MAX}, nodes{1, SIZE_MAX}, gpus, bytes;  // gpus: ranks that could use one
  const Algorithm* algorithm = nullptr;                       // of the catalogue, never nullptr in a table
  size_t piece = 32 * 1024;                                   // bytes
  int depth = 8;
  int radix = 2;
};

// What a row or the user may ask for.
constexpr size_t kMostPiece = size_t{1} << 30;  // bytes
constexpr int kMostDepth = 1024;
constexpr int kMostRadix = 64;

// What the user forces; each part by itself.
struct Forced {
  const Algorithm* algorithm = nullptr;  // nullptr: the table decides
  size_t piece = 0;                      // bytes; 0: the table decides
  int depth = 0;                         // 0: the table decides
  int radix = 0;                         // 0: the table decides
};

struct Choice {
  const Algorithm* algorithm;
  Tuning tuning;  // in elements
};

// What is chosen by.
struct Question {
  Collective collective;
  int ranks, nodes;
  size_t bytes;          // of the whole vector
  size_t element_bytes;  // of one element, > 0
  int gpus = 0;          // ranks that could use a GPU, whether this call's operands lie there or not
};

// table: holds the built-in rows, so that some row fits. An algorithm that cannot run among so many ranks is passed
// over, forced or not. Pieces grow, forced or not, where a vector would otherwise be cut into more than kMostPieces.
// Allocates nothing.
constexpr size_t kMostPieces = 128 * 1024;  // keeps a ring's plan below about 100 MB
Choice select(Span<const TuningRow> table, const Question& question, const Forced& forced);

// The built-in table. For each collective its last row fits everything.
Span<const TuningRow> builtin_tuning();

// These rows, and behind them the built-in ones.
std::vector<TuningRow> before_builtin(std::vector<TuningRow> rows);

}  // namespace gpurdma
