// The built-in tuning table, in the syntax of a tuning file.
//
// To renew it: run contrib/tune on a quiet machine with 2 and with 4 ranks, and put the rows that it writes here, with
// the ranges of ranks that they are to stand for (contrib/tune --ranks 4-7 writes that).
#include "coll/selection.h"
#include "coll/tuning_file.h"

namespace gpurdma {
namespace {

// One node: measured by contrib/tune with 2 ranks on a core each, and with 4 ranks on 2 cores. Rows for 5 to 7 ranks
// are those for 4; from 8 on doubling goes on for as long as the ring's 2 (n - 1) messages one after another cost more
// time than its extra bytes, reckoned with 1 us a message and 5 GB/s. Several nodes: reckoned, since fewer messages and
// bytes between nodes are what counts there; not measured.
// Where ranks have GPUs: reckoned for pieces that pass through pinned memory, whose copies and kernels are each worth
// some 10 us of the GPU's time only from about 512 KiB on; not measured.
constexpr const char* kText = R"(
allreduce  ranks 3-     nodes 2- gpus 1- bytes 1M-  hierarchical  piece 512K depth 4
allreduce  ranks 1-              gpus 1- bytes 1M-  ring          piece 512K depth 4
allreduce  ranks 1-2             bytes 0-32K   doubling      piece 32K  depth 8
allreduce  ranks 3      nodes 1  bytes 0-32K   multiplying   piece 32K  depth 8  radix 3
allreduce  ranks 4-7    nodes 1  bytes 0-32K   multiplying   piece 32K  depth 8  radix 4
allreduce  ranks 8-63   nodes 1  bytes 0-64K   doubling      piece 32K  depth 8
allreduce  ranks 64-255 nodes 1  bytes 0-128K  doubling      piece 32K  depth 8
allreduce  ranks 256-   nodes 1  bytes 0-512K  doubling      piece 32K  depth 8
allreduce  ranks 3-     nodes 2- bytes 0-16K   leaders       piece 32K  depth 8  radix 4
allreduce  ranks 3-     nodes 2- bytes 0-      hierarchical  piece 32K  depth 8
allreduce  ranks 1-              bytes 0-      ring          piece 32K  depth 4
)";

}  // namespace

Span<const TuningRow> builtin_tuning() {
  static const std::vector<TuningRow> rows = parse_tuning(kText).rows;  // a unit test holds it to be right
  return {rows.data(), rows.size()};
}

}  // namespace gpurdma
