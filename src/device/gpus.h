// Gpus: the GPUs of this process, as the rest of gpurdma sees them: where memory lies, and copies and reductions that
// end later.
//
// CudaGpus (cuda_gpus.h) implements it on the CUDA driver, the simulator on host memory. A gpu is named by a small
// number: it stands for one context of one device, and stays valid for the life of the process. Nothing here waits,
// but for enter(). Called by one thread at a time, which may change from call to call; the GpuInbox is called from
// inside progress() only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "reduce/types.h"

namespace gpurdma {

using GpuId = int;
constexpr GpuId kHost = -1;     // the CPU may touch it: plain, pinned and registered host memory
constexpr GpuId kUnknown = -2;  // the driver would not say, so that nobody may touch it

// What a piece of work on a GPU is known by to who asked for it.
using GpuToken = uint64_t;

class GpuInbox {
 public:
  virtual void worked(GpuToken token, Status status) = 0;  // ok: what it wrote is seen by the CPU, peers and GPUs
 protected:
  ~GpuInbox() = default;
};

// Rows of `width` bytes; one row unless it says otherwise.
struct GpuCopy {
  void* dst;
  const void* src;
  size_t width;
  size_t rows = 1;
  size_t dst_pitch = 0, src_pitch = 0;  // bytes from the start of one row to that of the next
};

class Gpus {
 public:
  virtual ~Gpus() = default;

  // Where the memory at `address` lies: the gpu whose work may touch it, kHost or kUnknown. Managed memory lies on a
  // GPU. Cost: nothing that can be measured where the process has not started CUDA, else under 0.5 us.
  virtual GpuId place(const void* address) = 0;

  // At the entry of a call, before work on that gpu is asked for: makes what it needs (streams, kernels, the first
  // memory; some 100 ms the first time), then lets `inbox->worked(token)` follow once the work that the application has
  // queued on the legacy default stream so far is done. Returns true where nothing is queued there, so that there is
  // nothing to wait for, and worked() does not follow. A failure comes as *status, and is logged.
  virtual bool enter(GpuId gpu, GpuInbox* inbox, GpuToken token, Status* status) = 0;

  // Whether the GPU itself can reduce these: it has a kernel for it. At the entry of a call, also before enter():
  // starts what the first use of that gpu needs.
  virtual bool reduces(GpuId gpu, Op op, Type type) = 0;

  // Asks for a copy. dst and src: memory of `gpu`, of another, or of the host, pinned or not; pageable memory passes
  // through pinned pieces. worked() follows unless an error is returned. Copies down (to the host), up and across
  // overlap each other and reductions; nothing is in order but by waiting for worked().
  virtual Status copy(GpuId gpu, const GpuCopy& copy, GpuInbox* inbox, GpuToken token) = 0;
  // Asks for dst[i] = left[i] op right[i], as Reduce (reduce/host.h) does on the host. All three: memory of that gpu,
  // or pinned() memory.
  virtual Status reduce(GpuId gpu, Op op, Type type, void* dst, const void* left, const void* right, size_t count,
                        GpuInbox* inbox, GpuToken token) = 0;
  // Hands to the GPU what was asked for and kept back so far, to be done together.
  virtual void flush() = 0;
  // Tells what has ended; returns how many.
  virtual int progress() = 0;

  // Memory of ours, within the bounds that were set: pinned memory, which the CPU, all GPUs and the network may touch,
  // and memory of a gpu. At least 256-byte aligned. nullptr: it is short now. `bytes` of give: as taken. Cheap where
  // such a block was given back before; otherwise for the entry of calls only.
  virtual void* take_pinned(size_t bytes) = 0;
  virtual void give_pinned(void* block, size_t bytes) = 0;
  virtual void* take(GpuId gpu, size_t bytes) = 0;
  virtual void give(GpuId gpu, void* block, size_t bytes) = 0;
  // Gives memory back to the system that was not used since the last call. That waits for what the application runs on
  // the GPU.
  virtual void trim() = 0;
};

struct GpuSettings {
  enum class Presence { detect, yes, no };  // detect: by the device nodes
  Presence presence = Presence::detect;
  size_t pinned_bytes = size_t(128) << 20;  // most of it
  size_t device_bytes = size_t(64) << 20;   // most of it, on each gpu
  bool waits_for_default_stream = true;
  bool kernels = true;  // false: nothing is reduced on GPUs
};

// This build can work on memory of GPUs.
extern const bool kHasCuda;

// Whether this machine has a GPU that this process could use, by its device nodes: asking the driver would freeze
// CUDA_VISIBLE_DEVICES and break fork.
bool gpu_present(GpuSettings::Presence presence);

// nullptr: there is no GPU, or this build has no CUDA. Starts nothing: the driver is looked for when place() is first
// asked.
std::unique_ptr<Gpus> open_gpus(const GpuSettings& settings);

}  // namespace gpurdma
