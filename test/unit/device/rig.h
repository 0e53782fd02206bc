// What the tests of src/device share: the emulated driver, device memory, and CudaGpus with an inbox.
#pragma once
#include <cuda.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "device/gpus.h"
#include "emu/emu.h"

namespace gpurdma::test {

inline void must(CUresult result, const char* what = "a call of the test's own") {
  if (result == CUDA_SUCCESS) return;
  const char* name = "?";
  cuGetErrorName(result, &name);
  ADD_FAILURE() << what << ": " << name;
}

// Log lines of the product, kept instead of printed.
class Lines {
 public:
  Lines() {
    kept().clear();
    log::configure(log::Level::warn, [](log::Level, const char* line) { kept().push_back(line); });
  }
  ~Lines() { log::configure(log::Level::warn, nullptr); }
  static std::vector<std::string>& kept() {
    static std::vector<std::string> lines;
    return lines;
  }
  size_t size() const { return kept().size(); }
  std::string all() const {
    std::string text;
    for (const std::string& line : kept()) text += line + "\n";
    return text;
  }
};

inline CUcontext new_context(CUdevice device) {
  CUcontext context = nullptr;
#if CUDA_VERSION >= 13000
  must(cuCtxCreate(&context, nullptr, 0, device));
#else
  must(cuCtxCreate(&context, 0, device));
#endif
  return context;
}

inline void start() {
  setenv("GPURDMA_EMU_DEVICES", "2", 0);
  must(cuInit(0));
}

// The primary context of a device, current while it lives.
class Device {
 public:
  explicit Device(int ordinal = 0) {
    start();
    must(cuDeviceGet(&device_, ordinal));
    must(cuDevicePrimaryCtxRetain(&context_, device_));
    must(cuCtxPushCurrent(context_));
  }
  ~Device() {
    CUcontext popped;
    must(cuCtxPopCurrent(&popped));
    must(cuDevicePrimaryCtxRelease(device_));
  }
  Device(const Device&) = delete;
  CUcontext context() const { return context_; }
  CUdevice device() const { return device_; }

 private:
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

using Bytes = std::vector<char>;

inline Bytes random_bytes(size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  Bytes result(bytes);
  for (char& b : result) b = char(random());
  return result;
}

// Memory of some kind, and how to look into it.
class Buffer {
 public:
  enum class Kind { plain, pinned, registered, device, managed, pool, mapped };
  static constexpr Kind kAll[] = {Kind::plain,   Kind::pinned, Kind::registered, Kind::device,
                                  Kind::managed, Kind::pool,   Kind::mapped};

  Buffer(Kind kind, size_t bytes, CUdevice device = 0) : kind_(kind), bytes_(bytes) {
    void* host = nullptr;
    switch (kind) {
      case Kind::plain:
      case Kind::registered:
        EXPECT_EQ(posix_memalign(&host, 4096, bytes), 0);
        address_ = CUdeviceptr(host);
        if (kind == Kind::registered) must(cuMemHostRegister(host, bytes, 0));
        break;
      case Kind::pinned:
        must(cuMemHostAlloc(&host, bytes, 0));
        address_ = CUdeviceptr(host);
        break;
      case Kind::device:
        must(cuMemAlloc(&address_, bytes));
        break;
      case Kind::managed:
        must(cuMemAllocManaged(&address_, bytes, CU_MEM_ATTACH_GLOBAL));
        break;
      case Kind::pool:
        must(cuMemAllocAsync(&address_, bytes, nullptr));
        must(cuStreamSynchronize(nullptr));
        break;
      case Kind::mapped:
        map(device);
        break;
    }
  }
  ~Buffer() {
    void* const host = reinterpret_cast<void*>(address_);
    switch (kind_) {
      case Kind::registered:
        must(cuMemHostUnregister(host));
        std::free(host);
        break;
      case Kind::plain:
        std::free(host);
        break;
      case Kind::pinned:
        must(cuMemFreeHost(host));
        break;
      case Kind::device:
      case Kind::managed:
        must(cuMemFree(address_));
        break;
      case Kind::pool:
        must(cuMemFreeAsync(address_, nullptr));
        must(cuStreamSynchronize(nullptr));
        break;
      case Kind::mapped:
        must(cuMemUnmap(address_, reserved_));
        must(cuMemAddressFree(address_, reserved_));
        break;
    }
  }
  Buffer(const Buffer&) = delete;

  char* data() const { return reinterpret_cast<char*>(address_); }
  size_t bytes() const { return bytes_; }
  bool on_device() const { return kind_ != Kind::plain && kind_ != Kind::pinned && kind_ != Kind::registered; }
  void write(const Bytes& content, size_t at = 0) const {
    if (on_device())
      must(cuMemcpyHtoD(address_ + at, content.data(), content.size()));
    else
      std::memcpy(data() + at, content.data(), content.size());
  }
  Bytes read() const {
    Bytes content(bytes_);
    if (on_device())
      must(cuMemcpyDtoH(content.data(), address_, bytes_));
    else
      std::memcpy(content.data(), data(), bytes_);
    return content;
  }

 private:
  // Chunks of physical memory, one behind the other.
  void map(CUdevice device) {
    CUmemAllocationProp kind{};
    kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    kind.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    kind.location.id = device;
    size_t chunk = 0;
    must(cuMemGetAllocationGranularity(&chunk, &kind, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    reserved_ = (bytes_ + chunk - 1) / chunk * chunk + chunk;  // at least two
    must(cuMemAddressReserve(&address_, reserved_, 0, 0, 0));
    for (size_t at = 0; at < reserved_; at += chunk) {
      CUmemGenericAllocationHandle handle;
      must(cuMemCreate(&handle, chunk, &kind, 0));
      must(cuMemMap(address_ + at, chunk, 0, handle, 0));
      must(cuMemRelease(handle));
    }
    CUmemAccessDesc access{};
    access.location = kind.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    must(cuMemSetAccess(address_, reserved_, &access, 1));
  }

  Kind kind_;
  size_t bytes_, reserved_ = 0;
  CUdeviceptr address_ = 0;
};

inline const char* name_of(Buffer::Kind kind) {
  constexpr const char* names[] = {"plain", "pinned", "registered", "device", "managed", "pool", "mapped"};
  return names[int(kind)];
}

// CudaGpus, and what it told.
class Rig final : public GpuInbox {
 public:
  explicit Rig(GpuSettings settings = {}) {
    settings.presence = GpuSettings::Presence::yes;
    gpus = open_gpus(settings);
  }
  void worked(GpuToken token, Status status) override {
    EXPECT_EQ(told_.count(token), 0u) << "told twice";
    told_[token] = status;
  }
  GpuToken next() { return ++last_; }
  bool told(GpuToken token) const { return told_.count(token) != 0; }
  // Until it is told; a hang ends the test.
  Status wait(GpuToken token) {
    const auto start = std::chrono::steady_clock::now();
    gpus->flush();
    while (!told(token)) {
      gpus->progress();
      if (std::chrono::steady_clock::now() - start > std::chrono::seconds(30)) {
        ADD_FAILURE() << "nothing was told of " << token;
        return Status::deadline;
      }
    }
    return told_[token];
  }
  Status enter(GpuId gpu) {
    Status status = Status::ok;
    const GpuToken token = next();
    if (gpus->enter(gpu, this, token, &status)) return status;
    return wait(token);
  }
  Status copy(GpuId gpu, const GpuCopy& copy) {
    const GpuToken token = next();
    const Status status = gpus->copy(gpu, copy, this, token);
    return status == Status::ok ? wait(token) : status;
  }
  size_t told_count() const { return told_.size(); }

  std::unique_ptr<Gpus> gpus;

 private:
  GpuToken last_ = 0;
  std::map<GpuToken, Status> told_;
};

}  // namespace gpurdma::test
