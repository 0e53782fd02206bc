// Contexts: which context each piece of memory belongs to, and what kind of memory it is.
//
// A GpuId is the place of a context in the order in which they were first seen. Memory that names no context (from
// pools, and virtual-memory mappings) belongs to the active primary context of its device. Primary contexts are kept
// alive while this lives; those that the application creates are its own. One thread at a time.
#pragma once
#include <cstdint>
#include <vector>

#include "device/driver.h"
#include "device/gpus.h"

namespace gpurdma {

struct MemoryInfo {
  enum class Kind { pageable, pinned, device, unknown };  // pinned: by whomever; device: managed too
  Kind kind = Kind::pageable;
  GpuId gpu = kHost;    // of device memory
  uint64_t buffer = 0;  // names the allocation or registration; 0: none
};

class Contexts {
 public:
  Contexts() = default;
  ~Contexts();
  Contexts(const Contexts&) = delete;
  Contexts& operator=(const Contexts&) = delete;

  // The gpu that the memory at `address` lies on, kHost or kUnknown. Cost: one call of the driver, once there is one.
  GpuId place(const void* address) {
    const Driver* driver = watch_.driver();
    return driver && address ? look(*driver, address, nullptr) : kHost;
  }
  MemoryInfo memory(const void* address);

  struct Context {
    CUcontext handle;
    CUdevice device;
    int ordinal;
  };
  size_t size() const { return contexts_.size(); }
  const Context& at(GpuId gpu) const { return contexts_[size_t(gpu)]; }
  // Not before place() found a gpu.
  const Driver& driver() { return *watch_.driver(); }

 private:
  // What the driver says of memory, and what that means here: it need not be asked for again.
  struct Known {
    CUcontext named;  // nullptr: none
    int ordinal;
    GpuId gpu;
  };
  struct Primary {
    CUcontext handle;
    CUdevice device;
  };

  GpuId look(const Driver& driver, const void* address, MemoryInfo* memory);
  GpuId identify(const Driver& driver, CUcontext named, int ordinal);
  CUcontext primary(const Driver& driver, CUdevice device, bool activate);
  CUcontext stand_in(const Driver& driver, CUdevice device);

  DriverWatch watch_;
  std::vector<Context> contexts_;
  std::vector<Known> known_;
  std::vector<Primary> primaries_;
};

}  // namespace gpurdma
