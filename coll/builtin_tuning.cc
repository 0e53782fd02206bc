// The built-in tuning table, in the syntax of a tuning file.
//
// To renew it: run contrib/tune on a quiet machine with 2 and with 4 ranks, and put the rows that it writes here, with
// the ranges of ranks that they are to stand for (contrib/tune --ranks 4-7 writes that).
#include "coll/selection.h"
#include "coll/tuning_file.h"

namespace gpurdma {
namespace {

// Doubling up to 64 KiB: measured with 2 to 4 ranks on one node, where the ring catches up at 128 KiB. With more ranks
// for as long as the ring's 2 (n - 1) messages one after another cost more time than doubling's extra bytes, reckoned
// with 1 us a message and 5 GB/s.
constexpr const char* kText = R"(
allreduce  ranks 1-63      bytes 0-64K   doubling  piece 32K  depth 8
allreduce  ranks 64-255    bytes 0-128K  doubling  piece 32K  depth 8
allreduce  ranks 256-1023  bytes 0-512K  doubling  piece 32K  depth 8
allreduce  ranks 1024-     bytes 0-1M    doubling  piece 32K  depth 8
allreduce  ranks 1-        bytes 0-      ring      piece 32K  depth 8
)";

}  // namespace

Span<const TuningRow> builtin_tuning() {
  static const std::vector<TuningRow> rows = parse_tuning(kText).rows;  // a unit test holds it to be right
  return {rows.data(), rows.size()};
}

}  // namespace gpurdma
