// Which kernel does which reduction, and the image that has them all.
#pragma once
#include <cstddef>

#include "reduce/types.h"

namespace gpurdma {

// A kernel is named after an op and a type; it may serve other types too: only comparisons know a sign, and both parts
// of a complex sum are real sums.
struct Kernel {
  Op op;
  Type type;
  int parts;  // elements of its type in one of the type asked for
};

// Returns whether there is one: the op is defined on the type, and GPUs know the type.
bool kernel_for(Op op, Type type, Kernel* kernel);

// "gpurdma_sum_float32", into `name`.
constexpr size_t kKernelName = 48;
void kernel_name(const Kernel& kernel, char (&name)[kKernelName]);

// A fat binary, for cuModuleLoadData; nullptr: this build has none.
const void* kernel_image();

}  // namespace gpurdma
