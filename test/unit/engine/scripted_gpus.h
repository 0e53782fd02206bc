// Gpus that do what a test says: memory lies where it was said to lie, work ends when the test ends it.
#pragma once
#include <cstring>
#include <map>
#include <vector>

#include "device/gpus.h"
#include "reduce/host.h"

namespace gpurdma {

class ScriptedGpus final : public Gpus {
 public:
  struct Work {
    GpuId gpu;
    GpuCopy copy;  // dst == nullptr: not a copy
    GpuInbox* inbox;
    GpuToken token;
  };

  std::map<const void*, GpuId> places;  // the rest is the host's
  bool has_kernels = true, pinned_is_short = false, device_is_short = false, default_stream_is_busy = false;
  Status copies = Status::ok, enters = Status::ok;
  std::vector<Work> asked;
  size_t held = 0;
  int flushes = 0;

  // The oldest work ends. Copies are done, all memory being the CPU's here.
  void end(Status status = Status::ok) {
    const Work work = asked.front();
    asked.erase(asked.begin());
    if (status == Status::ok && work.copy.dst) std::memcpy(work.copy.dst, work.copy.src, work.copy.width);
    work.inbox->worked(work.token, status);
  }

  GpuId place(const void* address) override {
    const auto found = places.find(address);
    return found == places.end() ? kHost : found->second;
  }
  bool enter(GpuId gpu, GpuInbox* inbox, GpuToken token, Status* status) override {
    *status = enters;
    if (enters != Status::ok || !default_stream_is_busy) return true;
    asked.push_back({gpu, {}, inbox, token});
    return false;
  }
  bool reduces(GpuId, Op, Type) override { return has_kernels; }
  Status copy(GpuId gpu, const GpuCopy& copy, GpuInbox* inbox, GpuToken token) override {
    if (copies == Status::ok) asked.push_back({gpu, copy, inbox, token});
    return copies;
  }
  Status reduce(GpuId gpu, Op op, Type type, void* dst, const void* left, const void* right, size_t count,
                GpuInbox* inbox, GpuToken token) override {
    host_reduce(op, type)(dst, left, right, count);
    asked.push_back({gpu, {}, inbox, token});
    return Status::ok;
  }
  void flush() override { ++flushes; }
  int progress() override { return 0; }
  void* take_pinned(size_t bytes) override { return pinned_is_short ? nullptr : take(bytes); }
  void give_pinned(void* block, size_t) override { give(block); }
  void* take(GpuId gpu, size_t bytes) override {
    if (device_is_short) return nullptr;
    void* block = take(bytes);
    places[block] = gpu;
    return block;
  }
  void give(GpuId, void* block, size_t) override {
    places.erase(block);
    give(block);
  }
  void trim() override {}

 private:
  void* take(size_t bytes) {
    ++held;
    return new char[bytes];
  }
  void give(void* block) {
    --held;
    delete[] static_cast<char*>(block);
  }
};

}  // namespace gpurdma
