// Reductions for x86 CPUs with AVX2. local.am gives this file its flags; only host.cc may call what is in it.
#include "reduce/loops.h"

namespace gpurdma {

constexpr ReduceTable kTable = make_table();
const ReduceTable reduce_avx2 = kTable;

}  // namespace gpurdma
