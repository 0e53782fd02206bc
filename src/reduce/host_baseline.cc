// Reductions for any CPU of the architecture that the build targets.
#include "reduce/loops.h"

namespace gpurdma {

constexpr ReduceTable kTable = make_table();
const ReduceTable reduce_baseline = kTable;

}  // namespace gpurdma
