// Devices, contexts, kernels, processes, failures on request, and how functions are found.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "device/kernels.h"
#include "emu/emu.h"
#include "emu/emu_test.h"

namespace {

constexpr size_t kCount = 1000, kBytes = kCount * sizeof(float);
const auto kExited = testing::ExitedWithCode(0);

TEST(EmuDriver, HasDevicesOfItsOwn) {
  use_device();
  int count = 0;
  EXPECT_OK(cuDeviceGetCount(&count));
  EXPECT_EQ(2, count);
  EXPECT_EQ(2, emu_device_count());
  CUuuid uuids[2];
  char names[2][20];
  for (int device = 0; device < 2; ++device) {
    EXPECT_OK(cuDeviceGetUuid(&uuids[device], device));
    EXPECT_OK(cuDeviceGetPCIBusId(names[device], 20, device));
    int domain, bus, slot;
    char name[20];
    EXPECT_EQ(0, emu_pci_id(device, &domain, &bus, &slot));
    snprintf(name, sizeof name, "%04X:%02X:%02X.0", domain, bus, slot);
    EXPECT_STREQ(name, names[device]);
  }
  EXPECT_NE(0, memcmp(&uuids[0], &uuids[1], sizeof uuids[0]));
  EXPECT_STRNE(names[0], names[1]);
}

TEST(EmuDeath, ShowsTheDevicesThatAreVisible) {
  EXPECT_EXIT(
      {
        setenv("GPURDMA_EMU_DEVICES", "4", 1);
        setenv("CUDA_VISIBLE_DEVICES", "3,1", 1);
        REQUIRE(cuInit(0) == CUDA_SUCCESS);
        int count = 0;
        REQUIRE(cuDeviceGetCount(&count) == CUDA_SUCCESS && count == 2);
        CUuuid uuid;
        REQUIRE(cuDeviceGetUuid(&uuid, 0) == CUDA_SUCCESS && uuid.bytes[15] == 0x43);
        exit(0);
      },
      kExited, "");
  EXPECT_EXIT(
      {
        setenv("CUDA_VISIBLE_DEVICES", "", 1);
        exit(cuInit(0) == CUDA_ERROR_NO_DEVICE ? 0 : 1);
      },
      kExited, "");
}

TEST(EmuDeath, StartsContextsWhenTheyAreRetained) {
  EXPECT_EXIT(
      {
        unsigned flags;
        int active;
        CUcontext context;
        CUcontext current;
        REQUIRE(cuCtxGetCurrent(&current) == CUDA_ERROR_NOT_INITIALIZED);
        REQUIRE(cuInit(0) == CUDA_SUCCESS);
        REQUIRE(cuCtxSetFlags(CU_CTX_SYNC_MEMOPS) == CUDA_ERROR_INVALID_CONTEXT);
        REQUIRE(cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS && active == 0);
        REQUIRE(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
        REQUIRE(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
        REQUIRE(cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == nullptr);
        REQUIRE(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
        REQUIRE(cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS && active == 1);
        REQUIRE(cuCtxPushCurrent(context) == CUDA_SUCCESS);
        const CUdeviceptr address = device_memory(64);
        CUdevice device;
        REQUIRE(cuCtxGetDevice(&device) == CUDA_SUCCESS && device == 0);
        REQUIRE(cuCtxPopCurrent(&current) == CUDA_SUCCESS && current == context);
        REQUIRE(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
        CUcontext of;
        REQUIRE(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, address) == CUDA_ERROR_INVALID_VALUE);
        exit(emu_leaks() == 0 ? 0 : 1);
      },
      kExited, "");
}

TEST(EmuDeath, BeginsAnewWhereAContextIsReset) {
  EXPECT_EXIT(
      {
        const CUcontext context = use_device();
        unsigned long long before;
        unsigned long long after;
        REQUIRE(cuCtxGetId(context, &before) == CUDA_SUCCESS);
        const CUdeviceptr address = device_memory(64);
        REQUIRE(cuDevicePrimaryCtxReset(0) == CUDA_SUCCESS);
        REQUIRE(cuCtxGetId(context, &after) == CUDA_SUCCESS && after != before);
        unsigned type;
        REQUIRE(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_ERROR_INVALID_VALUE);
        REQUIRE(cuMemFree(device_memory(64)) == CUDA_SUCCESS);
        REQUIRE(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
        REQUIRE(cuCtxGetId(context, &after) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
        exit(0);
      },
      kExited, "");
}

TEST(EmuKernels, AreAllThere) {
  use_device();
  CUmodule module;
  kernel(&module, "gpurdma_sum_float32");
  for (int op = 0; op < gpurdma::kOps; ++op) {
    for (int type = 0; type < gpurdma::kTypes; ++type) {
      gpurdma::Kernel known;
      if (!gpurdma::kernel_for(gpurdma::Op(op), gpurdma::Type(type), &known)) continue;
      char name[gpurdma::kKernelName];
      gpurdma::kernel_name(known, name);
      CUfunction function;
      EXPECT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&function, module, name)) << name;
    }
  }
  CUfunction function;
  EXPECT_EQ(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, "gpurdma_land_float32"));
  EXPECT_OK(cuModuleUnload(module));
  EXPECT_EQ(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&module, "no image"));
}

TEST(EmuKernels, ReduceLater) {
  use_device();
  CUmodule module;
  const CUfunction sum = kernel(&module, "gpurdma_sum_uint32");
  const CUdeviceptr dst = device_memory(kBytes), left = device_memory(kBytes);
  Pinned right(kCount, 30), result(kCount);
  CUstream stream = new_stream();
  emu_reset_counts();
  {
    Hold hold(stream);
    EXPECT_OK(cuMemsetD32Async(left, 12, kCount, stream));
    EXPECT_OK(launch(sum, stream, dst, left, right.address(), kCount - 1));
    right[0] = 31;
  }
  EXPECT_OK(cuMemcpyAsync(result.address(), dst, kBytes, stream));
  EXPECT_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(43, result[0]);
  for (size_t i = 1; i < kCount - 1; ++i) EXPECT_EQ(42, result[i]);
  EXPECT_NE(42, result[kCount - 1]);
  emu_counts counts;
  emu_get_counts(&counts);
  EXPECT_EQ(1u, counts.launches.copies);
  EXPECT_EQ(3 * (kCount - 1) * sizeof(int), counts.launches.bytes);
  EXPECT_OK(cuModuleUnload(module));
  EXPECT_OK(cuMemFree(dst));
  EXPECT_OK(cuMemFree(left));
  EXPECT_OK(cuStreamDestroy(stream));
}

TEST(EmuDeath, RefusesWhatAKernelMayNotDo) {
  CUmodule module;
  EXPECT_DEATH(
      {
        use_device();
        const CUfunction sum = kernel(&module, "gpurdma_sum_float32");
        const CUdeviceptr a = device_memory(kBytes);
        launch(sum, nullptr, a + 2, a + 2, a + 2, 10);
        cuCtxSynchronize();
      },
      "a kernel touches 4 bytes at .* misaligned");
  EXPECT_DEATH(
      {
        use_device();
        const CUfunction sum = kernel(&module, "gpurdma_sum_float32");
        const CUdeviceptr a = device_memory(kBytes);
        std::vector<float> pageable(kCount);
        launch(sum, nullptr, a, a, reinterpret_cast<CUdeviceptr>(pageable.data()), kCount);
      },
      "a kernel touches .* no memory of the GPU");
  EXPECT_DEATH(
      {
        use_device();
        const CUfunction sum = kernel(&module, "gpurdma_sum_float32");
        const CUdeviceptr a = device_memory(kBytes);
        launch(sum, nullptr, a, a, a, kCount + 1);
      },
      "behind the end");
  EXPECT_DEATH(
      {
        use_device(1);
        const CUdeviceptr other = device_memory(kBytes);
        use_device(0);
        const CUfunction sum = kernel(&module, "gpurdma_sum_float32");
        launch(sum, nullptr, other, other, other, kCount);
      },
      "a kernel on device 0 has no access");
  EXPECT_DEATH(
      {
        use_device(0);
        const CUfunction sum = kernel(&module, "gpurdma_sum_float32");
        use_device(1);
        launch(sum, nullptr, 0, 0, 0, 0);
      },
      "not of one context");
}

TEST(EmuDeath, LoadsNoImageOnRequest) {
  EXPECT_EXIT(
      {
        setenv("GPURDMA_EMU_REFUSE_IMAGES", "1", 1);
        use_device();
        CUmodule module;
        exit(cuModuleLoadData(&module, kernel_image()) == CUDA_ERROR_NO_BINARY_FOR_GPU ? 0 : 1);
      },
      kExited, "");
}

TEST(EmuDriver, FailsOnRequest) {
  use_device();
  CUdeviceptr address;
  emu_fail("cuMemAlloc:2:CUDA_ERROR_OUT_OF_MEMORY,cuMemFree:1+:719");
  EXPECT_OK(cuMemAlloc(&address, 64));
  CUdeviceptr none;
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&none, 64));
  EXPECT_EQ(CUDA_ERROR_LAUNCH_FAILED, cuMemFree(address));
  EXPECT_EQ(CUDA_ERROR_LAUNCH_FAILED, cuMemFree(address));
  emu_fail(nullptr);
  EXPECT_OK(cuMemFree(address));
}

TEST(EmuDeath, FailsInTheProcessThatIsNamed) {
  setenv("GPURDMA_EMU_FAIL", "cuDeviceGetCount", 1);
  setenv("GPURDMA_EMU_FAIL_RANK", "1", 1);
  for (const char* rank : {"0", "1"}) {
    setenv("OMPI_COMM_WORLD_RANK", rank, 1);
    EXPECT_EXIT(
        {
          int count;
          cuInit(0);
          const CUresult expected = *getenv("OMPI_COMM_WORLD_RANK") == '1' ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
          exit(cuDeviceGetCount(&count) == expected ? 0 : 1);
        },
        kExited, "");
  }
  for (const char* name : {"GPURDMA_EMU_FAIL", "GPURDMA_EMU_FAIL_RANK", "OMPI_COMM_WORLD_RANK"}) unsetenv(name);
}

TEST(EmuDriver, FindsFunctionsByVersion) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status;
  EXPECT_OK(cuGetProcAddress("cuMemAlloc", &function, 12000, 0, &status));
  EXPECT_EQ(reinterpret_cast<void*>(cuMemAlloc), function);
  EXPECT_EQ(CU_GET_PROC_ADDRESS_SUCCESS, status);
  void* old = nullptr;
  EXPECT_OK(cuGetProcAddress("cuMemAlloc", &old, 2000, 0, &status));
  EXPECT_TRUE(old != nullptr && old != function);
  EXPECT_OK(cuGetProcAddress("cuMemAllocAsync", &function, 11000, 0, &status));
  EXPECT_EQ(nullptr, function);
  EXPECT_EQ(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, status);
  EXPECT_OK(cuGetProcAddress("cuNothing", &function, 12000, 0, &status));
  EXPECT_EQ(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, status);
  CUarray array;
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuArrayCreate(&array, nullptr));  // one of those that are not there
}

TEST(EmuDriver, LeavesForkedChildrenAlone) {
  use_device();
  const pid_t child = fork();
  if (child == 0) {
    int count;
    exit(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED && cuInit(0) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(0, status);
}

// Reads what the exporter wrote, and writes over it.
int use_exported(int from) {
  CUipcMemHandle handle;
  REQUIRE(read(from, &handle, sizeof handle) == sizeof handle);
  use_device();
  CUdeviceptr address, again;
  REQUIRE(cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == CUDA_SUCCESS);
  REQUIRE(cuIpcOpenMemHandle(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == CUDA_SUCCESS && again == address);
  std::vector<int> values(kCount);
  REQUIRE(cuMemcpyDtoH(values.data(), address, kBytes) == CUDA_SUCCESS);
  for (const int value : values) REQUIRE(value == 11);
  REQUIRE(cuMemsetD32(address, 22, kCount) == CUDA_SUCCESS);
  REQUIRE(cuIpcCloseMemHandle(address) == CUDA_SUCCESS && cuIpcCloseMemHandle(address) == CUDA_SUCCESS);
  return 0;
}

TEST(EmuDeath, SharesMemoryBetweenProcesses) {
  EXPECT_EXIT(
      {
        int pipes[2];
        REQUIRE(pipe(pipes) == 0);
        const pid_t child = fork();
        if (child == 0) exit(use_exported(pipes[0]));
        use_device();
        device_memory(100);  // so that it does not lie at the start
        const CUdeviceptr address = device_memory(kBytes);
        REQUIRE(cuMemsetD32(address, 11, kCount) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS);
        CUipcMemHandle handle;
        REQUIRE(cuIpcGetMemHandle(&handle, address) == CUDA_SUCCESS);
        CUdeviceptr own;
        REQUIRE(cuIpcOpenMemHandle(&own, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == CUDA_ERROR_INVALID_CONTEXT);
        REQUIRE(write(pipes[1], &handle, sizeof handle) == sizeof handle);
        int status = -1;
        waitpid(child, &status, 0);
        REQUIRE(status == 0);
        std::vector<int> values(kCount);
        REQUIRE(cuMemcpyDtoH(values.data(), address, kBytes) == CUDA_SUCCESS);
        for (const int value : values) REQUIRE(value == 22);
        exit(0);
      },
      kExited, "");
}

}  // namespace
