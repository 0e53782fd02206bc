// Selection: which algorithm runs a call, in pieces of which size, through how many slots.
//
// A table of rows says so, and a forced setting overrides any part of it. Everything depends on values that are equal
// on all ranks: the collective, the ranks, the bytes of the vector, and settings that all ranks agreed on.
//
// A row is written as a line (the built-in table is printed that way by gpurdma_info --tuning):
//   allreduce  ranks 2-7  bytes 0-8K  doubling  piece 32K  depth 8
// The first row that fits applies. "ranks 8-" and "bytes 8K-" have no upper end; both ends are included.
#pragma once
#include <cstdint>
#include <string>

#include "coll/catalogue.h"

namespace gpurdma {

struct TuningRow {
  Collective collective;
  int ranks_from, ranks_to;
  size_t bytes_from, bytes_to;
  const char* algorithm;  // of the catalogue
  size_t piece;           // bytes
  int depth;
};

constexpr int kNoRankLimit = INT_MAX;
constexpr size_t kNoByteLimit = SIZE_MAX;

// What the user forces; each part by itself.
struct Forced {
  const Algorithm* algorithm = nullptr;  // nullptr: the table decides
  size_t piece = 0;                      // bytes; 0: the table decides
  int depth = 0;                         // 0: the table decides
};

struct Choice {
  const Algorithm* algorithm;
  Tuning tuning;  // in elements
};

// element_bytes: of one element, > 0; bytes: of the whole vector. A forced algorithm that cannot run among so many
// ranks is passed over. Pieces grow, forced or not, where a vector would otherwise be cut into more than kMostPieces.
// Allocates nothing.
constexpr size_t kMostPieces = 128 * 1024;  // keeps a ring's plan below about 100 MB
Choice select(Collective collective, int ranks, size_t bytes, size_t element_bytes, const Forced& forced);

// The built-in table, and a row as a line.
Span<const TuningRow> builtin_tuning();
std::string to_line(const TuningRow& row);

}  // namespace gpurdma
