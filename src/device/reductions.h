// Reductions: the kernels of one context, and reductions that are gathered to be launched together.
//
// The fat binary is loaded once; a driver that refuses it leaves a context without kernels, which is said. Reductions
// of one kernel share a launch, since a launch costs as much as reducing some 100 KiB. All is called with the context
// entered, save gather() and gathered().
#pragma once
#include <cstdint>
#include <vector>

#include "device/driver.h"
#include "device/gpus.h"
#include "device/kernel_args.h"
#include "device/kernels.h"

namespace gpurdma {

class Reductions {
 public:
  struct Task {
    ReduceTask task;
    GpuInbox* inbox;
    GpuToken token;
  };
  // A launch, or one to be.
  struct Batch {
    Kernel kernel;
    int count;
    Task tasks[kTasksPerLaunch];
  };

  // gpu_name: for log lines; stays.
  void open(const Driver& driver, CUdevice device, const char* gpu_name);
  // In a context that is gone nothing is unloaded.
  void close(bool context_lives);

  // Whether there is a kernel. It is loaded to the GPU, if it is not yet.
  bool has(Op op, Type type);
  // has() was true. Returns whether it is time to launch.
  bool gather(Op op, Type type, const Task& task);
  bool gathered() const { return !batches_.empty(); }
  // Takes one of the batches.
  Batch next();
  CUresult launch(CUstream stream, const Batch& batch);

 private:
  enum class State : uint8_t { unknown, absent, present };
  struct Function {
    State state = State::unknown;
    CUfunction handle = nullptr;
  };

  Function& function(const Kernel& kernel) { return functions_[int(kernel.op)][int(kernel.type)]; }

  const Driver* driver_ = nullptr;
  const char* gpu_name_ = "";
  CUmodule module_ = nullptr;
  int processors_ = 1;
  Function functions_[kOps][kTypes];
  std::vector<Batch> batches_;
};

}  // namespace gpurdma
