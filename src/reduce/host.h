// Reductions of host memory: one function for each defined op and type, built for several instruction sets.
//
// The set is chosen once, at load, from what the CPU offers; every set gives the same bits. Integers wrap, unsigned
// types compare as unsigned, MAXLOC and MINLOC take the lower index of equal values, a NaN operand makes the result
// NaN (for MAX, MIN, MAXLOC and MINLOC too), and no multiply is fused with an add. Pure functions: any thread.
#pragma once
#include "reduce/types.h"

namespace gpurdma {

// dst[i] = left[i] op right[i] for i in [0, count). dst may be left or right themselves, or overlap neither.
// Any alignment that is a multiple of the element's own alignment works.
using Reduce = void (*)(void* dst, const void* left, const void* right, size_t count);

// The fastest function for this CPU, or nullptr where the op is not defined on the type. Cost: a table look-up.
Reduce host_reduce(Op op, Type type);

// Instruction sets this build has and this CPU runs, slowest first; for tests and benches.
struct InstructionSet {
  const char* name;
  Reduce (*reduce)(Op op, Type type);
};
size_t instruction_sets(const InstructionSet** sets);

}  // namespace gpurdma
