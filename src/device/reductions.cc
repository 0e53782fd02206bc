#include "device/reductions.h"

#include <algorithm>

#include "base/log.h"

namespace gpurdma {

void Reductions::open(const Driver& driver, CUdevice device, const char* gpu_name) {
  driver_ = &driver;
  gpu_name_ = gpu_name;
  if (!kernel_image()) {
    GPURDMA_LOG(info, "%s: this build of gpurdma has no kernels (it was made without nvcc): the CPU reduces", gpu_name);
    return;
  }
  // Kernels are given pinned memory as the CPU addresses it.
  int alike = 0;
  if (driver.device_get_attribute(&alike, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, device) !=
          CUDA_SUCCESS ||
      !alike) {
    GPURDMA_LOG(info, "%s does not address host memory as the CPU does: the CPU reduces", gpu_name);
    return;
  }
  const CUresult result = driver.module_load_data(&module_, kernel_image());
  if (result != CUDA_SUCCESS) {
    module_ = nullptr;
    const int version = driver.version();
    GPURDMA_LOG(
        warn,
        "%s: the driver (CUDA %d.%d) refuses gpurdma's kernels, so that the CPU reduces: %s. Build gpurdma with "
        "a CUDA toolkit no newer than the driver, and for this GPU (configure --with-cuda-arch)",
        gpu_name, version / 1000, version % 1000 / 10, driver.text(result));
    return;
  }
  (void)driver.device_get_attribute(&processors_, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  processors_ = std::max(processors_, 1);
}

void Reductions::close(bool context_lives) {
  if (module_ && context_lives) (void)driver_->module_unload(module_);
  module_ = nullptr;
  batches_.clear();
  for (auto& row : functions_) std::fill(std::begin(row), std::end(row), Function{});
}

bool Reductions::has(Op op, Type type) {
  Kernel kernel;
  if (!module_ || !kernel_for(op, type, &kernel)) return false;
  Function& f = function(kernel);
  if (f.state == State::unknown) {
    char name[kKernelName];
    kernel_name(kernel, name);
    CUresult result = driver_->module_get_function(&f.handle, module_, name);
    // Else the driver loads it at the first launch, which may have to wait for all work of the GPU.
    if (result == CUDA_SUCCESS && driver_->func_load) {
      const CUresult loaded = driver_->func_load(f.handle);
      if (loaded != CUDA_ERROR_NOT_SUPPORTED) result = loaded;
    }
    f.state = result == CUDA_SUCCESS ? State::present : State::absent;
    if (result != CUDA_SUCCESS)
      GPURDMA_LOG(warn, "%s: the kernel %s is not to be had, so that the CPU reduces: %s", gpu_name_, name,
                  driver_->text(result));
  }
  return f.state == State::present;
}

bool Reductions::gather(Op op, Type type, const Task& task) {
  Kernel kernel{};
  (void)kernel_for(op, type, &kernel);
  Batch* batch = nullptr;
  for (Batch& b : batches_) {
    if (b.kernel.op == kernel.op && b.kernel.type == kernel.type && b.count < kTasksPerLaunch) batch = &b;
  }
  if (!batch) {
    batches_.emplace_back();
    batch = &batches_.back();
    batch->kernel = kernel;
    batch->count = 0;
  }
  Task& added = batch->tasks[batch->count++];
  added = task;
  added.task.count *= uint64_t(kernel.parts);
  return batch->count == kTasksPerLaunch;
}

Reductions::Batch Reductions::next() {
  const Batch batch = batches_.back();
  batches_.pop_back();
  return batch;
}

// Enough threads that each has four loads of 16 bytes from each operand, but no more than the GPU runs at once.
CUresult Reductions::launch(CUstream stream, const Batch& batch) {
  ReduceArgs args{};
  uint64_t most = 0;
  for (int i = 0; i < batch.count; ++i) {
    args.tasks[i] = batch.tasks[i].task;
    most = std::max(most, args.tasks[i].count);
  }
  constexpr uint64_t block_bytes = uint64_t(kThreadsPerBlock) * 16 * 4;
  const uint64_t wanted = (most * size_of(batch.kernel.type) + block_bytes - 1) / block_bytes;
  const uint64_t room = std::max<uint64_t>(uint64_t(processors_) * 4 / uint64_t(batch.count), 1);
  const auto blocks = unsigned(std::max<uint64_t>(std::min(wanted, room), 1));
  void* parameters[] = {&args};
  return driver_->launch_kernel(function(batch.kernel).handle, blocks, unsigned(batch.count), 1, kThreadsPerBlock, 1, 1,
                                0, stream, parameters, nullptr);
}

}  // namespace gpurdma
