#include "emu/kernels.h"

#include <string>

#include "emu/module.h"
#include "reduce/tables.h"

namespace emu {

using namespace gpurdma;

namespace {

template <int kOp, int kType>
void run(const ReduceTask& task, uint64_t thread, uint64_t) {
  const size_t size = size_of(Type(kType));
  const size_t alignment = size < 8 ? size : 4;
  for (const void* operand : {static_cast<const void*>(task.dst), task.left, task.right})
    if (reinterpret_cast<uintptr_t>(operand) % alignment != 0) misaligned_access(operand, size);
  if (thread == 0) reduce_baseline.at[kOp][kType](task.dst, task.left, task.right, task.count);
}

template <int... kCells>
Kernel kernel_at(int cell, std::integer_sequence<int, kCells...>) {
  static constexpr Kernel kernels[] = {run<kCells / kTypes, kCells % kTypes>...};
  return kernels[cell];
}

}  // namespace

Kernel find_kernel(const char* name, size_t* element) {
  for (int op = 0; op < kOps; ++op)
    for (int type = 0; type < kTypes; ++type) {
      if (!defined(Op(op), Type(type)) || size_of(Type(type)) == 0) continue;
      if (name != std::string("gpurdma_") + name_of(Op(op)) + "_" + name_of(Type(type))) continue;
      *element = size_of(Type(type));
      return kernel_at(op * kTypes + type, std::make_integer_sequence<int, kOps * kTypes>());
    }
  return nullptr;
}

}  // namespace emu
