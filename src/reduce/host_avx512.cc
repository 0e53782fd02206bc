// Reductions for x86 CPUs with AVX-512 (F, BW, DQ, VL). local.am gives this file its flags; only host.cc may call what
// is in it.
#include "reduce/loops.h"

namespace gpurdma {

constexpr ReduceTable kTable = make_table();
const ReduceTable reduce_avx512 = kTable;

}  // namespace gpurdma
