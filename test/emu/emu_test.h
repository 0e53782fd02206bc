// For the emulator's tests: they are programs of the driver API like any other.
//
// What needs an environment of its own, or ends the process, is done in a fresh process: the body of EXPECT_EXIT, where
// nothing has called cuInit yet.
#pragma once
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <vector>

#define EXPECT_OK(call) EXPECT_EQ(CUDA_SUCCESS, (call))

// In a fresh process, where gtest's expectations would go unheard.
#define REQUIRE(condition)                                                    \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      _exit(1);                                                               \
    }                                                                         \
  } while (false)

// Starts the driver where it is not started yet; device `device`'s primary context is current then.
CUcontext use_device(int device = 0);

CUdeviceptr device_memory(size_t bytes);
// Pinned memory of ints, freed with it.
class Pinned {
 public:
  explicit Pinned(size_t count, int value = 0);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  int* data() const { return data_; }
  int& operator[](size_t i) const { return data_[i]; }
  CUdeviceptr address() const { return reinterpret_cast<CUdeviceptr>(data_); }

 private:
  int* data_ = nullptr;
};

CUstream new_stream(unsigned flags = CU_STREAM_NON_BLOCKING);

// Holds a stream up until it is let go.
class Hold {
 public:
  explicit Hold(CUstream stream);
  ~Hold() { let_go(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  void let_go() { __atomic_store_n(&held_[0], 0, __ATOMIC_RELEASE); }

 private:
  Pinned held_{1, 1};
};

// Asks until a stream or an event is done; false: it is not after some seconds.
bool ends(const std::function<CUresult()>& query);

// A range of virtual memory on device 0 made of so many chunks, with access for that device.
struct Chunks {
  CUdeviceptr address = 0;
  size_t chunk = 0;  // bytes of each
  std::vector<CUmemGenericAllocationHandle> handles;

  explicit Chunks(int count, bool with_access = true);
  ~Chunks();
};

// An image that holds gpurdma's kernels as far as the emulator is concerned.
const void* kernel_image();
CUfunction kernel(CUmodule* module, const char* name);
// dst = left op right.
CUresult launch(CUfunction kernel, CUstream stream, CUdeviceptr dst, CUdeviceptr left, CUdeviceptr right, size_t count);
