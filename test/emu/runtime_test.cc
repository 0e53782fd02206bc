// The runtime API on the software driver, as a program in C uses it, and NVML as UCX does.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t kBytes = 1 << 20;

// Before anything starts the driver.
const bool two_devices = setenv("GPURDMA_EMU_DEVICES", "2", 1) == 0;

class Runtime : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(two_devices);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  }
  void TearDown() override { EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess); }
};

std::vector<unsigned char> pattern(size_t bytes, unsigned char first) {
  std::vector<unsigned char> data(bytes);
  std::iota(data.begin(), data.end(), first);
  return data;
}

// A host function that keeps a stream busy until it is let go.
struct Gate {
  std::atomic<bool> open{false};
  static void wait(void* gate) {
    while (!static_cast<Gate*>(gate)->open) std::this_thread::yield();
  }
};

TEST_F(Runtime, Devices) {
  int count = 0, version = 0, device = -1;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(cudaRuntimeGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, CUDART_VERSION);
  EXPECT_EQ(cudaDriverGetVersion(&version), cudaSuccess);
  EXPECT_GE(version, 12000);
  cudaDeviceProp first, second;
  ASSERT_EQ(cudaGetDeviceProperties(&first, 0), cudaSuccess);
  ASSERT_EQ(cudaGetDeviceProperties(&second, 1), cudaSuccess);
  EXPECT_GT(first.totalGlobalMem, 0u);
  EXPECT_GT(std::strlen(first.name), 0u);
  EXPECT_GE(first.major, 7);
  EXPECT_NE(std::memcmp(&first.uuid, &second.uuid, sizeof first.uuid), 0);
  char id[32];
  ASSERT_EQ(cudaDeviceGetPCIBusId(id, sizeof id, 1), cudaSuccess);
  EXPECT_EQ(cudaDeviceGetByPCIBusId(&device, id), cudaSuccess);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST_F(Runtime, EachThreadHasItsDevice) {
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  int device = -1;
  cudaPointerAttributes attributes;
  std::thread([&] {
    void* memory;
    ASSERT_EQ(cudaGetDevice(&device), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
    ASSERT_EQ(cudaPointerGetAttributes(&attributes, memory), cudaSuccess);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
  }).join();
  EXPECT_EQ(device, 0);
  EXPECT_EQ(attributes.device, 0);
  ASSERT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 1);
}

TEST_F(Runtime, CopiesThereAndBack) {
  const auto sent = pattern(kBytes, 3);
  std::vector<unsigned char> received(kBytes);
  void *memory, *other;
  ASSERT_EQ(cudaMalloc(&memory, kBytes), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&other, kBytes), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(memory, sent.data(), kBytes, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(other, memory, kBytes, cudaMemcpyDeviceToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(received.data(), other, kBytes, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(received, sent);
  ASSERT_EQ(cudaMemset(other, 0xab, kBytes / 2), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(received.data(), other, kBytes, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(received[kBytes / 2 - 1], 0xab);
  EXPECT_EQ(received[kBytes / 2], sent[kBytes / 2]);
  // 16 rows of 32 bytes, from 64 bytes apart to 48.
  ASSERT_EQ(cudaMemcpy2D(other, 48, memory, 64, 32, 16, cudaMemcpyDeviceToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(received.data(), other, kBytes, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(received[15 * 48 + 31], sent[15 * 64 + 31]);
  EXPECT_EQ(received[15 * 48 + 32], 0xab);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaFree(other), cudaSuccess);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
}

TEST_F(Runtime, KnowsAllKindsOfMemory) {
  void *device, *managed, *pinned;
  auto plain = std::make_unique<unsigned char[]>(kBytes);
  std::vector<unsigned char> registered(kBytes);
  ASSERT_EQ(cudaMalloc(&device, kBytes), cudaSuccess);
  ASSERT_EQ(cudaMallocManaged(&managed, kBytes, cudaMemAttachGlobal), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&pinned, kBytes), cudaSuccess);
  ASSERT_EQ(cudaHostRegister(registered.data(), kBytes, cudaHostRegisterDefault), cudaSuccess);
  const auto type = [](const void* pointer) {
    cudaPointerAttributes attributes;
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, pointer), cudaSuccess);
    return attributes.type;
  };
  EXPECT_EQ(type(static_cast<char*>(device) + 100), cudaMemoryTypeDevice);
  EXPECT_EQ(type(managed), cudaMemoryTypeManaged);
  EXPECT_EQ(type(pinned), cudaMemoryTypeHost);
  EXPECT_EQ(type(registered.data()), cudaMemoryTypeHost);
  EXPECT_EQ(type(plain.get()), cudaMemoryTypeUnregistered);
  void* seen_by_device;
  EXPECT_EQ(cudaHostGetDevicePointer(&seen_by_device, pinned, 0), cudaSuccess);
  EXPECT_EQ(seen_by_device, pinned);
  static_cast<char*>(managed)[0] = 1;  // the CPU may touch it
  static_cast<char*>(pinned)[kBytes - 1] = 1;
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaFree(managed), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(registered.data()), cudaSuccess);
}

TEST_F(Runtime, MemoryOfPools) {
  void* memory;
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaMallocAsync(&memory, kBytes, nullptr), cudaSuccess);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, memory), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(cudaFreeAsync(memory, nullptr), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(Runtime, MemoryIsCounted) {
  size_t before, total, after;
  void* memory;
  ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&memory, 16 * kBytes), cudaSuccess);
  ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_GE(before - after, 16 * kBytes);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, total + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STRNE(cudaGetErrorString(cudaErrorMemoryAllocation), "unrecognized error code");
  EXPECT_EQ(cudaMalloc(&memory, 0), cudaSuccess);
  EXPECT_EQ(memory, nullptr);
}

TEST_F(Runtime, StreamsRunLaterAndEventsTell) {
  const auto sent = pattern(kBytes, 7);
  void *pinned, *memory;
  cudaStream_t stream;
  cudaEvent_t begin, end;
  ASSERT_EQ(cudaHostAlloc(&pinned, kBytes, cudaHostAllocDefault), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&memory, kBytes), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&begin), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(memory, sent.data(), kBytes, cudaMemcpyHostToDevice), cudaSuccess);
  std::memset(pinned, 0, kBytes);

  Gate gate;
  ASSERT_EQ(cudaLaunchHostFunc(stream, Gate::wait, &gate), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(begin, stream), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(pinned, memory, kBytes, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(end, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_EQ(cudaEventQuery(end), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
  EXPECT_EQ(static_cast<unsigned char*>(pinned)[1], 0);
  gate.open = true;
  ASSERT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(std::memcmp(pinned, sent.data(), kBytes), 0);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
  EXPECT_GE(milliseconds, 0);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(begin), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(end), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

// cudaMemcpy is ordered behind what a blocking stream has queued.
TEST_F(Runtime, CopiesWaitForBlockingStreams) {
  void* memory;
  cudaStream_t stream;
  unsigned char seen = 0;
  ASSERT_EQ(cudaMalloc(&memory, 1), cudaSuccess);
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  Gate gate;
  ASSERT_EQ(cudaMemset(memory, 1, 1), cudaSuccess);
  ASSERT_EQ(cudaLaunchHostFunc(stream, Gate::wait, &gate), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(memory, 2, 1, stream), cudaSuccess);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.open = true;
  });
  ASSERT_EQ(cudaMemcpy(&seen, memory, 1, cudaMemcpyDeviceToHost), cudaSuccess);
  opener.join();
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(Runtime, CallsBack) {
  struct Seen {
    cudaStream_t stream = nullptr;
    cudaError_t status = cudaErrorUnknown;
  } seen;
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamAddCallback(
                stream,
                [](cudaStream_t from, cudaError_t status, void* data) {
                  *static_cast<Seen*>(data) = {from, status};
                },
                &seen, 0),
            cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(seen.stream, stream);
  EXPECT_EQ(seen.status, cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(Runtime, CapturesAStream) {
  void* memory;
  cudaStream_t stream;
  cudaGraph_t graph = nullptr;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  ASSERT_EQ(cudaMalloc(&memory, 1), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(memory, 2, 1, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamIsCapturing(stream, &status), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_NE(graph, nullptr);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(Runtime, StartsAnewAfterReset) {
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  int device = -1;
  void* memory;
  ASSERT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 1);
  ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, memory), cudaSuccess);
  EXPECT_EQ(attributes.device, 1);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(Runtime, RefusesToLaunch) {
  EXPECT_EQ(cudaLaunchKernel(reinterpret_cast<void*>(&pattern), dim3{1, 1, 1}, dim3{1, 1, 1}, nullptr, 0, nullptr),
            cudaErrorNotSupported);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
}

TEST_F(Runtime, FindsFunctionsOfTheDriver) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  ASSERT_EQ(cudaGetDriverEntryPointByVersion("cuMemGetInfo", &function, 12000, cudaEnableDefault, &found), cudaSuccess);
  EXPECT_EQ(found, cudaDriverEntryPointSuccess);
  EXPECT_NE(function, nullptr);
}

// Programs are linked with this version of the symbols.
TEST_F(Runtime, HasTheVersionThatProgramsAskFor) {
  for (const char* name : {"cudaMalloc", "cudaGetSymbolSize", "__cudaRegisterFatBinary"})
    EXPECT_NE(dlvsym(RTLD_DEFAULT, name, "libcudart.so.13"), nullptr) << name;
}

TEST_F(Runtime, NvmlSeesTheSameDevices) {
  void* nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  ASSERT_NE(nvml, nullptr) << dlerror();
  for (const char* name : {"nvmlInit_v2", "nvmlShutdown", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2",
                           "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetFieldValues",
                           "nvmlDeviceGetNvLinkRemotePciInfo", "nvmlDeviceGetNvLinkRemotePciInfo_v2",
                           "nvmlDeviceGetGpuFabricInfoV", "nvmlErrorString"})
    EXPECT_NE(dlsym(nvml, name), nullptr) << name;
  const auto count = reinterpret_cast<int (*)(unsigned*)>(dlsym(nvml, "nvmlDeviceGetCount_v2"));
  const auto handle = reinterpret_cast<int (*)(unsigned, void**)>(dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2"));
  const auto pci = reinterpret_cast<int (*)(void*, char*)>(dlsym(nvml, "nvmlDeviceGetPciInfo_v3"));
  unsigned devices = 0;
  ASSERT_EQ(count(&devices), 0);
  EXPECT_EQ(devices, 2u);
  void* second;
  ASSERT_EQ(handle(1, &second), 0);
  EXPECT_NE(handle(2, &second), 0);
  char info[128] = {}, id[32];
  ASSERT_EQ(pci(second, info), 0);
  ASSERT_EQ(cudaDeviceGetPCIBusId(id, sizeof id, 1), cudaSuccess);
  EXPECT_STRCASEEQ(info, id);
  dlclose(nvml);
}

}  // namespace
