// Tuning files: the tuning table as text, one row a line. `gpurdma_info --tuning` prints the same, contrib/tune writes
// it.
//
//   # A comment; it may also end a line.
//   allreduce  ranks 2-7  nodes 1  bytes 0-8K  doubling  piece 32K  depth 8  radix 2
//
// The collective comes first, then in any order an algorithm of the catalogue and pairs of a name and a value. All
// pairs may be left out: then ranks, nodes, gpus and bytes are any, and piece 32K, depth 8, radix 2. "8-" has no upper
// end, "8" is 8 alone, both ends are included; K, M and G mean 2^10, 2^20 and 2^30.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "coll/selection.h"

namespace gpurdma {

struct ParsedTuning {
  std::vector<TuningRow> rows;
  std::string error;  // empty: all is well; otherwise where and what, as `3:27: unknown algorithm "rng"; ...`
};

// Any bytes may be given. Lines may end as on Windows, and a byte order mark may come first. Stops at the first error.
ParsedTuning parse_tuning(std::string_view text);

// The same of a file; the error begins with its path. A file of more than kMostTuningBytes is refused.
constexpr size_t kMostTuningBytes = size_t{1} << 20;
ParsedTuning read_tuning(const char* path);

// The row as a line, without its end. Parsed again it gives the same row.
std::string to_line(const TuningRow& row);

// 8K, 2M or 1000: in the largest unit that divides it.
std::string in_units(size_t number);

}  // namespace gpurdma
