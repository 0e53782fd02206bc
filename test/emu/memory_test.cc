// Memory: what the CPU may not touch, what is told of an address, what runs out and what is left.
#include <cstring>
#include <numeric>

#include "emu/emu.h"
#include "emu/emu_test.h"

namespace {

constexpr size_t kBytes = 40000;
const auto kExited = testing::ExitedWithCode(0);

struct Told {
  CUcontext context;
  unsigned type;
  int managed, device, mapped;
  unsigned long long id;
  CUdeviceptr start;
  size_t bytes;
};

Told told_of(CUdeviceptr address) {
  Told told;
  memset(&told, 0x55, sizeof told);
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_CONTEXT,          CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                      CU_POINTER_ATTRIBUTE_IS_MANAGED,       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                      CU_POINTER_ATTRIBUTE_MAPPED,           CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                      CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* data[] = {&told.context, &told.type, &told.managed, &told.device,
                  &told.mapped,  &told.id,   &told.start,   &told.bytes};
  EXPECT_OK(cuPointerGetAttributes(8, attributes, data, address));
  return told;
}

TEST(Emu, CopiesThroughADevice) {
  use_device();
  std::vector<int> in(kBytes / 4), out(kBytes / 4);
  std::iota(in.begin(), in.end(), 7);
  const CUdeviceptr a = device_memory(kBytes), b = device_memory(kBytes);
  EXPECT_OK(cuMemcpyHtoD(a, in.data(), kBytes));
  EXPECT_OK(cuMemcpyDtoD(b, a, kBytes));
  EXPECT_OK(cuMemcpyDtoH(out.data(), b, kBytes));
  EXPECT_EQ(in, out);
  EXPECT_OK(cuMemFree(a));
  EXPECT_OK(cuMemFree(b));
}

TEST(Emu, CopiesRowsAndSetsThem) {
  use_device();
  std::vector<char> in(6 * 10), out(6 * 10, 'x');
  std::iota(in.begin(), in.end(), 0);
  CUdeviceptr address;
  size_t pitch;
  EXPECT_OK(cuMemAllocPitch(&address, &pitch, 4, 10, 4));
  EXPECT_OK(cuMemsetD8(address, 'z', pitch * 10));
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = in.data();
  copy.srcPitch = 6;
  copy.srcXInBytes = 1;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = address;
  copy.dstPitch = pitch;
  copy.WidthInBytes = 4;
  copy.Height = 10;
  EXPECT_OK(cuMemcpy2D(&copy));
  std::vector<char> row(6);
  EXPECT_OK(cuMemcpyDtoH(row.data(), address + 3 * pitch, 6));
  EXPECT_EQ((std::vector<char>{19, 20, 21, 22, 'z', 'z'}), row);
  EXPECT_OK(cuMemFree(address));
}

TEST(EmuDeath, FaultsWhereTheCpuTouchesDeviceMemory) {
  EXPECT_DEATH(
      {
        use_device();
        *reinterpret_cast<volatile int*>(device_memory(kBytes) + 8) = 1;
      },
      "the CPU touched device memory: .*byte 8 of 40000 bytes of device memory");
}

TEST(EmuDeath, LetsTheCpuTouchItOnRequest) {
  EXPECT_EXIT(
      {
        setenv("GPURDMA_EMU_REACHABLE", "1", 1);
        use_device();
        const CUdeviceptr address = device_memory(kBytes);
        *reinterpret_cast<volatile int*>(address) = 77;
        int value = 0;
        cuMemcpyDtoH(&value, address, 4);
        exit(value == 77 ? 0 : 1);
      },
      kExited, "");
}

TEST(EmuDeath, TellsFreedMemoryAndTheEndOfMemory) {
  std::vector<char> host(kBytes + 1);
  EXPECT_DEATH(
      {
        use_device();
        const CUdeviceptr address = device_memory(kBytes);
        cuMemFree(address);
        cuMemcpyDtoH(host.data(), address, 8);
      },
      "memory that was freed");
  EXPECT_DEATH(
      {
        use_device();
        const CUdeviceptr address = device_memory(kBytes);
        cuMemFree(address);
        cuMemFree(address);
      },
      "cuMemFree: .* memory that was freed");
  EXPECT_DEATH(
      {
        use_device();
        cuMemcpyDtoH(host.data(), device_memory(kBytes), kBytes + 1);
      },
      "end 1 bytes behind the end");
}

TEST(EmuDeath, AsksForAContext) {
  EXPECT_DEATH(
      {
        cuInit(0);
        CUdeviceptr address;
        cuMemAlloc(&address, 4);
      },
      "cuMemAlloc: this thread has no current context");
}

TEST(EmuDeath, ReturnsErrorsWhereItIsNotStrict) {
  EXPECT_EXIT(
      {
        setenv("GPURDMA_EMU_STRICT", "0", 1);
        CUdeviceptr address;
        REQUIRE(cuMemAlloc(&address, 4) == CUDA_ERROR_NOT_INITIALIZED);
        REQUIRE(cuInit(0) == CUDA_SUCCESS);
        REQUIRE(cuMemAlloc(&address, 4) == CUDA_ERROR_INVALID_CONTEXT);
        use_device();
        REQUIRE(cuMemFree(4096) == CUDA_ERROR_INVALID_VALUE);
        exit(0);
      },
      kExited, "");
}

TEST(EmuDeath, RunsOutOfMemory) {
  EXPECT_EXIT(
      {
        setenv("GPURDMA_EMU_MEMORY", "1m", 1);
        use_device();
        CUdeviceptr a;
        CUdeviceptr b;
        REQUIRE(cuMemAlloc(&a, 600000) == CUDA_SUCCESS);
        REQUIRE(cuMemAlloc(&b, 600000) == CUDA_ERROR_OUT_OF_MEMORY);
        REQUIRE(cuMemFree(a) == CUDA_SUCCESS);
        for (int i = 0; i < 1000; ++i) {
          REQUIRE(cuMemAlloc(&b, 600000) == CUDA_SUCCESS);
          REQUIRE(cuMemFree(b) == CUDA_SUCCESS);
        }
        exit(0);
      },
      kExited, "");
}

TEST(EmuDeath, TellsLeaks) {
  setenv("GPURDMA_EMU_LEAKS", "1", 1);
  const auto kLeaky = testing::ExitedWithCode(98);
  EXPECT_EXIT(
      {
        use_device();
        device_memory(512);
        exit(0);
      },
      kLeaky, "left at exit: .* 512 bytes of device memory");
  EXPECT_EXIT(
      {
        use_device();
        new_stream();
        exit(0);
      },
      kLeaky, "left at exit: 1 streams");
  EXPECT_EXIT(
      {
        use_device();
        static int memory[100];
        cuMemHostRegister(memory, sizeof memory, 0);
        exit(0);
      },
      kLeaky, "left at exit: .* 400 bytes of registered host memory");
  EXPECT_EXIT(
      {
        use_device();
        cuStreamDestroy(new_stream());
        cuMemFree(device_memory(512));
        exit(0);
      },
      kExited, "");
  unsetenv("GPURDMA_EMU_LEAKS");
}

TEST(Emu, TellsWhereAnAddressLies) {
  CUcontext context = use_device(1);
  const CUdeviceptr plain = device_memory(kBytes);
  CUdeviceptr managed, pooled;
  EXPECT_OK(cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL));
  EXPECT_OK(cuMemAllocAsync(&pooled, kBytes, nullptr));
  std::vector<int> registered(1000), unknown(1000);
  const CUdeviceptr registered_address = reinterpret_cast<CUdeviceptr>(registered.data());
  EXPECT_OK(cuMemHostRegister(registered.data(), 4000, 0));
  EXPECT_EQ(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(registered.data() + 1, 4, 0));
  Pinned pinned(1000);
  use_device(0);  // what is told does not depend on it

  Told told = told_of(plain + 100);
  EXPECT_EQ(context, told.context);
  EXPECT_EQ(unsigned(CU_MEMORYTYPE_DEVICE), told.type);
  EXPECT_EQ(0, told.managed);
  EXPECT_EQ(1, told.device);
  EXPECT_EQ(plain, told.start);
  EXPECT_EQ(kBytes, told.bytes);
  EXPECT_NE(told.id, told_of(managed).id);

  told = told_of(managed);
  EXPECT_EQ(context, told.context);
  EXPECT_EQ(1, told.managed);
  *reinterpret_cast<int*>(managed) = 3;  // the CPU may

  told = told_of(pooled);
  EXPECT_EQ(nullptr, told.context);
  EXPECT_EQ(unsigned(CU_MEMORYTYPE_DEVICE), told.type);
  EXPECT_EQ(1, told.device);

  for (const CUdeviceptr host : {pinned.address(), registered_address}) {
    told = told_of(host + 4);
    EXPECT_EQ(context, told.context);
    EXPECT_EQ(unsigned(CU_MEMORYTYPE_HOST), told.type);
    EXPECT_EQ(host, told.start);
  }

  const CUdeviceptr nowhere = reinterpret_cast<CUdeviceptr>(unknown.data());
  told = told_of(nowhere);
  EXPECT_EQ(nullptr, told.context);
  EXPECT_EQ(0u, told.type);
  EXPECT_EQ(0u, told.start);
  unsigned type;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, nowhere));

  use_device(1);
  EXPECT_OK(cuMemHostUnregister(registered.data()));
  EXPECT_EQ(0u, told_of(registered_address).type);
  EXPECT_OK(cuMemFree(plain));
  EXPECT_OK(cuMemFree(managed));
  EXPECT_OK(cuMemFreeAsync(pooled, nullptr));
}

TEST(Emu, MapsChunks) {
  use_device();
  Chunks chunks(2);
  const CUdeviceptr address = chunks.address;
  const size_t chunk = chunks.chunk;
  const Told told = told_of(address + chunk);
  EXPECT_EQ(nullptr, told.context);
  EXPECT_EQ(unsigned(CU_MEMORYTYPE_DEVICE), told.type);
  EXPECT_EQ(address, told.start);
  EXPECT_EQ(2 * chunk, told.bytes);
  CUdeviceptr start;
  size_t bytes;
  EXPECT_OK(cuMemGetAddressRange(&start, &bytes, address + chunk + 1));
  EXPECT_EQ(address + chunk, start);
  EXPECT_EQ(chunk, bytes);
  // Over the border between the two.
  std::vector<int> in(1000, 5), out(1000);
  EXPECT_OK(cuMemcpyHtoD(address + chunk - 2000, in.data(), 4000));
  EXPECT_OK(cuMemcpyDtoH(out.data(), address + chunk - 2000, 4000));
  EXPECT_EQ(in, out);
}

TEST(EmuDeath, MapsNothingWithoutAccess) {
  EXPECT_DEATH(
      {
        use_device();
        Chunks chunks(1, false);
        int value = 0;
        cuMemcpyHtoD(chunks.address, &value, 4);
      },
      "nobody was given access");
}

TEST(EmuDeath, TakesPoolMemoryFromTheProgramAtOnce) {
  EXPECT_DEATH(
      {
        use_device();
        CUdeviceptr address;
        cuMemAllocAsync(&address, kBytes, nullptr);
        cuMemsetD8Async(address, 1, kBytes, nullptr);
        cuMemFreeAsync(address, nullptr);
        cuMemsetD8Async(address, 1, kBytes, nullptr);
      },
      "cuMemsetD8Async: .*freed");
}

TEST(Emu, CountsCopies) {
  use_device();
  Pinned pinned(1000);
  std::vector<int> pageable(1000);
  const CUdeviceptr address = device_memory(4000);
  use_device(1);
  const CUdeviceptr other = device_memory(4000);
  use_device(0);
  emu_reset_counts();
  EXPECT_OK(cuMemcpy(address, pinned.address(), 400));
  EXPECT_OK(cuMemcpyHtoD(address, pageable.data(), 40));
  EXPECT_OK(cuMemcpyDtoH(pinned.data(), address, 800));
  EXPECT_OK(cuMemcpyDtoD(address, address + 2000, 8));
  EXPECT_OK(cuMemcpyDtoD(address, other, 16));
  emu_counts counts;
  emu_get_counts(&counts);
  EXPECT_EQ(400u, counts.up_pinned.bytes);
  EXPECT_EQ(1u, counts.up_pinned.copies);
  EXPECT_EQ(40u, counts.up_pageable.bytes);
  EXPECT_EQ(800u, counts.down_pinned.bytes);
  EXPECT_EQ(0u, counts.down_pageable.copies);
  EXPECT_EQ(8u, counts.within.bytes);
  EXPECT_EQ(16u, counts.between.bytes);
  EXPECT_EQ(2u, counts.memory.copies);
  EXPECT_EQ(4000u, counts.pinned.bytes);
  EXPECT_OK(cuMemFree(address));
  EXPECT_OK(cuMemFree(other));
}

}  // namespace
