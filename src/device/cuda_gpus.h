// CudaGpus: Gpus (device/gpus.h) on the CUDA driver.
//
// Puts together what lies in this directory: Contexts says where memory lies, a Gpu has what is needed in one context,
// Transfers makes the copies that one call of the driver cannot. What has ended is collected, then told, since who is
// told may ask for more.
#pragma once
#include <memory>
#include <vector>

#include "device/contexts.h"
#include "device/gpu.h"
#include "device/gpus.h"
#include "device/pool.h"
#include "device/transfers.h"

namespace gpurdma {

class CudaGpus final : public Gpus, private PoolSource {
 public:
  explicit CudaGpus(const GpuSettings& settings);
  // Waits for what is under way, of which nothing is told any more.
  ~CudaGpus() override;

  GpuId place(const void* address) override { return contexts_.place(address); }
  bool enter(GpuId gpu, GpuInbox* inbox, GpuToken token, Status* status) override;
  bool reduces(GpuId gpu, Op op, Type type) override;
  Status copy(GpuId gpu, const GpuCopy& copy, GpuInbox* inbox, GpuToken token) override;
  Status reduce(GpuId gpu, Op op, Type type, void* dst, const void* left, const void* right, size_t count,
                GpuInbox* inbox, GpuToken token) override;
  void flush() override;
  int progress() override;
  void* take_pinned(size_t bytes) override;
  void give_pinned(void* block, size_t bytes) override;
  void* take(GpuId gpu, size_t bytes) override;
  void give(GpuId gpu, void* block, size_t bytes) override;
  void trim() override;

 private:
  // The gpu, opened; nullptr: it cannot be, which is logged.
  Gpu* opened(GpuId gpu, Status* status);
  // One that is open: pinned memory belongs to no GPU, but a context is needed to pin it.
  Gpu* any_opened();
  Status open_transfers(Gpu& gpu);
  Status copy_straight(Gpu& gpu, const RowCopier& copier, Gpu::StreamName stream, const GpuCopy& copy, GpuInbox* inbox,
                       GpuToken token);
  void* allocate(size_t bytes) override;
  void release(void* chunk, size_t bytes) override;

  const GpuSettings settings_;
  Contexts contexts_;
  std::vector<std::unique_ptr<Gpu>> gpus_;  // by GpuId; nullptr: not used yet
  Transfers transfers_;
  Pool pinned_;
  std::vector<EndedWork> ended_, telling_;
};

}  // namespace gpurdma
