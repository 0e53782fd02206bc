#include "coll/selection.h"

#include <algorithm>

namespace gpurdma {
namespace {

constexpr size_t K = 1024;
constexpr Collective kAllreduce = Collective::allreduce;

// Doubling up to 64 KiB: measured with 2 to 4 ranks on one node, where the ring catches up at 128 KiB. With more ranks
// for as long as the ring's 2 (n - 1) messages one after another cost more time than doubling's extra bytes, reckoned
// with 1 us a message and 5 GB/s.
constexpr TuningRow kBuiltin[] = {
    {kAllreduce, 1, 63, 0, 64 * K, "doubling", 32 * K, 8},
    {kAllreduce, 64, 255, 0, 128 * K, "doubling", 32 * K, 8},
    {kAllreduce, 256, 1023, 0, 512 * K, "doubling", 32 * K, 8},
    {kAllreduce, 1024, kNoRankLimit, 0, 1024 * K, "doubling", 32 * K, 8},
    {kAllreduce, 1, kNoRankLimit, 0, kNoByteLimit, "ring", 32 * K, 8},
};

bool fits(const TuningRow& row, Collective collective, int ranks, size_t bytes) {
  return row.collective == collective && row.ranks_from <= ranks && ranks <= row.ranks_to && row.bytes_from <= bytes &&
         bytes <= row.bytes_to;
}

// 8K, 2M or 1000: the largest unit that divides it.
std::string in_units(size_t bytes) {
  const char* unit = "";
  for (const char* next : {"K", "M", "G"}) {
    if (bytes == 0 || bytes % K != 0) break;
    bytes /= K;
    unit = next;
  }
  return std::to_string(bytes) + unit;
}

}  // namespace

Choice select(Collective collective, int ranks, size_t bytes, size_t element_bytes, const Forced& forced) {
  // A collective's last row in the table fits everything; the unit test holds it to that.
  const TuningRow* row = kBuiltin;
  while (!fits(*row, collective, ranks, bytes)) ++row;

  const bool force =
      forced.algorithm != nullptr && forced.algorithm->collective == collective && forced.algorithm->takes(ranks);
  const size_t count = bytes / element_bytes;
  const size_t wanted = (forced.piece > 0 ? forced.piece : row->piece) / element_bytes;
  const size_t least = (count + kMostPieces - 1) / kMostPieces;
  return {force ? forced.algorithm : find_algorithm(collective, row->algorithm),
          {std::max({wanted, least, size_t{1}}), forced.depth > 0 ? forced.depth : row->depth}};
}

Span<const TuningRow> builtin_tuning() { return {kBuiltin, std::size(kBuiltin)}; }

std::string to_line(const TuningRow& row) {
  std::string line = name_of(row.collective);
  line += "  ranks " + std::to_string(row.ranks_from) + "-";
  if (row.ranks_to != kNoRankLimit) line += std::to_string(row.ranks_to);
  line += "  bytes " + in_units(row.bytes_from) + "-";
  if (row.bytes_to != kNoByteLimit) line += in_units(row.bytes_to);
  line += std::string("  ") + row.algorithm;
  line += "  piece " + in_units(row.piece) + "  depth " + std::to_string(row.depth);
  return line;
}

}  // namespace gpurdma
