// What a reduction kernel gets: several reductions at once, by value.
//
// A kernel is named gpurdma_<op>_<type> after reduce/types.h ("gpurdma_sum_float32") and launched with a grid of
// (any, tasks) blocks. It does tasks[blockIdx.y] with the threads of all blocks of that row.
#pragma once
#include <cstdint>

namespace gpurdma {

struct ReduceTask {
  void* dst;
  const void* left;
  const void* right;
  uint64_t count;  // elements
};

constexpr int kTasksPerLaunch = 16;
constexpr int kThreadsPerBlock = 512;  // at most

struct ReduceArgs {
  ReduceTask tasks[kTasksPerLaunch];
};

}  // namespace gpurdma
