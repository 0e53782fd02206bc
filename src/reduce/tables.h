// The tables of reduction functions, one for each instruction set: constant data, made by the compiler.
//
// Internal to host.cc and host_<set>.cc. A null entry means that the next slower set's function is to be used.
#pragma once
#include "reduce/host.h"

namespace gpurdma {

struct ReduceTable {
  Reduce at[kOps][kTypes];
};

extern const ReduceTable reduce_baseline;
#ifdef __x86_64__
extern const ReduceTable reduce_avx2;
extern const ReduceTable reduce_avx512;
#endif

}  // namespace gpurdma
