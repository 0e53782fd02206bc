// Memory of every kind that a program with CUDA may pass to MPI, through the driver API, which is loaded at run time:
// tests are built without CUDA, and say that they skip where there is no driver or no GPU.
#pragma once
#include <dlfcn.h>
#include <limits.h>

#include "check.h"

namespace device {

enum class Kind { host, pinned, managed, device };
constexpr int kKinds = 4;
inline const char* name(Kind kind) {
  static const char* const kNames[] = {"host", "pinned", "managed", "device"};
  return kNames[int(kind)];
}

// The part of the driver that tests need. Addresses are CUdeviceptr.
class Driver {
 public:
  // "": ready, with a context of the first GPU current in this thread. Otherwise why not.
  std::string open() {
    library_ = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library_) return "there is no CUDA driver";
    load("cuInit", init_);
    load("cuDeviceGetCount", count_);
    load("cuDeviceGet", get_);
    load("cuDevicePrimaryCtxRetain", retain_);
    load("cuDevicePrimaryCtxRelease_v2", release_);
    load("cuCtxSetCurrent", set_current_);
    load("cuMemAlloc_v2", allocate_);
    load("cuMemFree_v2", free_);
    load("cuMemAllocManaged", allocate_managed_);
    load("cuMemHostAlloc", allocate_pinned_);
    load("cuMemFreeHost", free_pinned_);
    load("cuMemcpyHtoD_v2", to_device_);
    load("cuMemcpyDtoH_v2", from_device_);
    if (!missing_.empty()) return "the CUDA driver lacks " + missing_;
    if (init_(0) != 0) return "the CUDA driver does not start";
    if (count_(&gpus_) != 0 || gpus_ == 0) return "there is no GPU";
    contexts_.assign(size_t(gpus_), nullptr);
    use(0);
    return "";
  }
  // Of the driver's library; nullptr: it has none such.
  void* symbol(const char* name) const { return dlsym(library_, name); }
  int gpus() const { return gpus_; }
  // Makes the primary context of a GPU current in this thread.
  void use(int gpu) {
    int handle = 0;
    if (!contexts_[size_t(gpu)]) must(get_(&handle, gpu)), must(retain_(&contexts_[size_t(gpu)], handle));
    must(set_current_(contexts_[size_t(gpu)]));
  }
  // Gives the contexts back; before MPI_Finalize nothing, after it whatever is left.
  void close() {
    for (int gpu = 0; gpu < gpus_; ++gpu)
      if (contexts_[size_t(gpu)]) release_(gpu);
    gpus_ = 0;
  }

  void* allocate(Kind kind, size_t bytes) {
    unsigned long long address = 0;
    void* pointer = nullptr;
    constexpr unsigned kAttachGlobal = 1;
    if (kind == Kind::device) return must(allocate_(&address, bytes)), (void*)address;
    if (kind == Kind::managed) return must(allocate_managed_(&address, bytes, kAttachGlobal)), (void*)address;
    if (kind == Kind::pinned) return must(allocate_pinned_(&pointer, bytes, 0)), pointer;
    return malloc(bytes);
  }
  void free_memory(Kind kind, void* memory) {
    if (kind == Kind::device || kind == Kind::managed)
      must(free_((unsigned long long)memory));
    else if (kind == Kind::pinned)
      must(free_pinned_(memory));
    else
      free(memory);
  }
  // Managed memory is written and read as device memory is, so that the copies are ordered with other work on it.
  void put(Kind kind, void* to, const void* from, size_t bytes) {
    if (kind == Kind::device || kind == Kind::managed)
      must(to_device_((unsigned long long)to, from, bytes));
    else
      memcpy(to, from, bytes);
  }
  void fetch(Kind kind, void* to, const void* from, size_t bytes) {
    if (kind == Kind::device || kind == Kind::managed)
      must(from_device_(to, (unsigned long long)from, bytes));
    else
      memcpy(to, from, bytes);
  }

 private:
  template <class F>
  void load(const char* name, F& function) {
    function = (F)symbol(name);
    if (!function) missing_ = name;
  }
  static void must(int error) {
    if (error == 0) return;
    check::fail("the CUDA driver returned error %d", error);
    fflush(stdout);
    abort();
  }

  void* library_ = nullptr;
  int gpus_ = 0;
  std::vector<void*> contexts_;
  std::string missing_;
  int (*init_)(unsigned) = nullptr;
  int (*count_)(int*) = nullptr;
  int (*get_)(int*, int) = nullptr;
  int (*retain_)(void**, int) = nullptr;
  int (*release_)(int) = nullptr;
  int (*set_current_)(void*) = nullptr;
  int (*allocate_)(unsigned long long*, size_t) = nullptr;
  int (*free_)(unsigned long long) = nullptr;
  int (*allocate_managed_)(unsigned long long*, size_t, unsigned) = nullptr;
  int (*allocate_pinned_)(void**, size_t, unsigned) = nullptr;
  int (*free_pinned_)(void*) = nullptr;
  int (*to_device_)(unsigned long long, const void*, size_t) = nullptr;
  int (*from_device_)(void*, unsigned long long, size_t) = nullptr;
};

inline Driver driver;

// Initialises MPI and then CUDA, as programs do that choose their GPU by their rank; without CUDA the test is skipped.
inline void start(int threads = MPI_THREAD_SINGLE) {
  check::start(threads);
  const std::string why_not = driver.open();
  if (why_not.empty()) return;
  if (check::rank == 0) printf("SKIP %s: %s\n", check::program, why_not.c_str());
  MPI_Finalize();
  exit(77);
}

inline int finish() {
  check::expect_calls();
  MPI_Finalize();
  driver.close();
  return check::result();
}

// A buffer of any kind with an image of what all of it should hold, guard bytes before and behind included.
class Buffer {
 public:
  Buffer(Kind kind, size_t bytes, check::Random& random) : kind_(kind), image_(bytes + 2 * kGuard) {
    for (unsigned char& c : image_) c = (unsigned char)random.next();
    memory_ = (unsigned char*)driver.allocate(kind, image_.size());
  }
  ~Buffer() { driver.free_memory(kind_, memory_); }
  Buffer(const Buffer&) = delete;

  void* address() const { return memory_ + kGuard; }
  unsigned char* image() { return image_.data() + kGuard; }
  Kind kind() const { return kind_; }
  void put() { driver.put(kind_, memory_, image_.data(), image_.size()); }
  // The first byte that is not as in the image, from address(); `none` where all are.
  static constexpr long none = LONG_MIN;
  long wrong() const {
    std::vector<unsigned char> now(image_.size());
    driver.fetch(kind_, now.data(), memory_, now.size());
    const auto at = std::mismatch(now.begin(), now.end(), image_.begin()).first - now.begin();
    return at == (long)now.size() ? none : (long)at - (long)kGuard;
  }

 private:
  static constexpr size_t kGuard = 256;
  const Kind kind_;
  std::vector<unsigned char> image_;
  unsigned char* memory_;
};

}  // namespace device
