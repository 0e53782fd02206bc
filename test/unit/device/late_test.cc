// A process that loads and starts CUDA late, or never: until then all memory is host memory, and nothing is started.
#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "base/log.h"
#include "device/gpus.h"

namespace gpurdma {
namespace {

int lines = 0;

TEST(DeviceLate, TheDriverIsSeenOnceItIsLoadedAndStarted) {
  log::configure(log::Level::info, [](log::Level, const char*) { ++lines; });
  GpuSettings settings;
  settings.presence = GpuSettings::Presence::no;
  EXPECT_EQ(open_gpus(settings), nullptr);
  settings.presence = GpuSettings::Presence::yes;
  const auto gpus = open_gpus(settings);
  ASSERT_NE(gpus, nullptr);

  EXPECT_EQ(gpus->place(&lines), kHost);
  EXPECT_EQ(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), nullptr) << "it was loaded for the application";
  constexpr int kCalls = 100000;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) (void)gpus->place(&i);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  std::printf("place() without a driver: %.0f ns\n", took.count() / kCalls);
  RecordProperty("place_ns", int(took.count() / kCalls));

  void* const driver = dlopen(EMULATOR, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(driver, nullptr) << dlerror();
  EXPECT_EQ(gpus->place(&lines), kHost);
  EXPECT_EQ(lines, 0);

  const auto call = [driver](const char* name) { return dlsym(driver, name); };
  ASSERT_EQ(reinterpret_cast<decltype(&cuInit)>(call("cuInit"))(0), CUDA_SUCCESS);
  EXPECT_EQ(gpus->place(&lines), kHost);
  unsigned flags;
  int active = 1;
  ASSERT_EQ(
      reinterpret_cast<decltype(&cuDevicePrimaryCtxGetState)>(call("cuDevicePrimaryCtxGetState"))(0, &flags, &active),
      CUDA_SUCCESS);
  EXPECT_EQ(active, 0) << "a context was made for the application";

  CUcontext context;
  CUdeviceptr memory;
  ASSERT_EQ(reinterpret_cast<decltype(&cuDevicePrimaryCtxRetain)>(call("cuDevicePrimaryCtxRetain"))(&context, 0),
            CUDA_SUCCESS);
  ASSERT_EQ(reinterpret_cast<decltype(&cuCtxSetCurrent)>(call("cuCtxSetCurrent"))(context), CUDA_SUCCESS);
  ASSERT_EQ(reinterpret_cast<decltype(&cuMemAlloc)>(call("cuMemAlloc_v2"))(&memory, 1000), CUDA_SUCCESS);
  EXPECT_EQ(gpus->place(reinterpret_cast<void*>(memory)), 0);
  EXPECT_EQ(gpus->place(&lines), kHost);
  ASSERT_EQ(reinterpret_cast<decltype(&cuMemFree)>(call("cuMemFree_v2"))(memory), CUDA_SUCCESS);
  log::configure(log::Level::warn, nullptr);
}

}  // namespace
}  // namespace gpurdma
