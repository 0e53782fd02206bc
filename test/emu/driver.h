// The emulated driver's state, and the way into every one of its functions.
//
// One lock guards all state; work on streams runs without it. Objects that a program may name by a handle are never
// deleted, only marked dead, so that the use of a destroyed handle can be told. Nothing is torn down at exit.
#pragma once
#include <cuda.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "emu/settings.h"

namespace emu {

struct Context;
struct Memory;
using Lock = std::unique_lock<std::mutex>;

// All objects of one kind that a program has handles of.
template <typename T>
class Handles {
 public:
  T* add(std::shared_ptr<T> object) {
    T* handle = object.get();
    all_[handle] = std::move(object);
    return handle;
  }
  // nullptr: never was one. A dead one is found too.
  T* find(const void* handle) const {
    const auto found = all_.find(handle);
    return found == all_.end() ? nullptr : found->second.get();
  }
  const std::map<const void*, std::shared_ptr<T>>& all() const { return all_; }

 private:
  std::map<const void*, std::shared_ptr<T>> all_;
};

struct Device {
  int physical = 0;  // which of GPURDMA_EMU_DEVICES it is; CUDA_VISIBLE_DEVICES may leave some out
  Context* primary = nullptr;
  unsigned primary_flags = 0;
  int primary_users = 0;
  size_t used = 0;  // bytes of device memory

  int bus() const { return 0x3b + 0x10 * physical; }
  CUuuid uuid() const;
};

struct Driver {
  std::mutex mutex;
  std::condition_variable changed;  // some work ended
  Settings settings;
  int pid = 0;  // of the process that called cuInit; 0: nobody has
  bool ended = false;
  std::vector<Device> devices;
  std::mt19937_64 random;
  uint64_t last_id = 0;

  uint64_t next_id() { return ++last_id; }
};

Driver& driver();

// Misuse ends the process with a message; where GPURDMA_EMU_STRICT=0, it returns `error` as a real driver might.
__attribute__((format(printf, 2, 3))) CUresult misuse(CUresult error, const char* format, ...);
// Ends the process with a message.
__attribute__((format(printf, 1, 2), noreturn)) void fail(const char* format, ...);

enum class Need { nothing, init };

// One call of a driver function: it is counted, may be told to fail, and holds the lock.
class Call {
 public:
  Call(const char* function, Need need);
  CUresult refused() const { return refused_; }
  Lock& lock() { return lock_; }

 private:
  Lock lock_;
  CUresult refused_ = CUDA_SUCCESS;
};

// The body of every driver function: enter("cuMemAlloc", [&](Lock& lock) { ...; return CUDA_SUCCESS; }).
template <typename Body>
CUresult enter(const char* function, Body&& body, Need need = Need::init) {
  Call call(function, need);
  return call.refused() != CUDA_SUCCESS ? call.refused() : body(call.lock());
}

CUdevice count_of_devices();
inline bool is_device(CUdevice device) { return device >= 0 && device < count_of_devices(); }

const char* name_of(CUresult error);
CUresult error_named(const std::string& name);  // by name or number; CUDA_ERROR_UNKNOWN where it is neither

// True while this thread runs a host function of a stream, where the driver may not be called.
extern thread_local bool in_host_function;

}  // namespace emu
