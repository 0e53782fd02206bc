#include "emu/emu_test.h"

#include <time.h>

#include "device/kernel_args.h"

CUcontext use_device(int device) {
  EXPECT_OK(cuInit(0));
  static CUcontext contexts[8];  // retained once, for the life of the process
  if (contexts[device] == nullptr) {
    EXPECT_OK(cuDevicePrimaryCtxRetain(&contexts[device], device));
  }
  EXPECT_OK(cuCtxSetCurrent(contexts[device]));
  return contexts[device];
}

CUdeviceptr device_memory(size_t bytes) {
  CUdeviceptr address = 0;
  EXPECT_OK(cuMemAlloc(&address, bytes));
  return address;
}

Pinned::Pinned(size_t count, int value) {
  EXPECT_OK(cuMemHostAlloc(reinterpret_cast<void**>(&data_), count * sizeof(int), 0));
  for (size_t i = 0; i < count; ++i) data_[i] = value;
}

Pinned::~Pinned() { EXPECT_OK(cuMemFreeHost(data_)); }

CUstream new_stream(unsigned flags) {
  CUstream stream = nullptr;
  EXPECT_OK(cuStreamCreate(&stream, flags));
  return stream;
}

Hold::Hold(CUstream stream) {
  const auto wait = [](void* held) {
    const timespec pause = {0, 100000};
    while (__atomic_load_n(static_cast<int*>(held), __ATOMIC_ACQUIRE) != 0) nanosleep(&pause, nullptr);
  };
  EXPECT_OK(cuLaunchHostFunc(stream, wait, held_.data()));
}

bool ends(const std::function<CUresult()>& query) {
  const timespec pause = {0, 1000000};
  for (int tries = 0; tries < 10000; ++tries) {
    const CUresult result = query();
    if (result != CUDA_ERROR_NOT_READY) return result == CUDA_SUCCESS;
    nanosleep(&pause, nullptr);
  }
  return false;
}

static CUmemAllocationProp on_device(int device) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

Chunks::Chunks(int count, bool with_access) {
  const CUmemAllocationProp properties = on_device(0);
  EXPECT_OK(cuMemGetAllocationGranularity(&chunk, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  EXPECT_OK(cuMemAddressReserve(&address, size_t(count) * chunk, 0, 0, 0));
  for (int i = 0; i < count; ++i) {
    handles.emplace_back();
    EXPECT_OK(cuMemCreate(&handles.back(), chunk, &properties, 0));
    EXPECT_OK(cuMemMap(address + size_t(i) * chunk, chunk, 0, handles.back(), 0));
  }
  CUmemAccessDesc access = {};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (with_access) {
    EXPECT_OK(cuMemSetAccess(address, handles.size() * chunk, &access, 1));
  }
}

Chunks::~Chunks() {
  EXPECT_OK(cuMemUnmap(address, handles.size() * chunk));
  for (const CUmemGenericAllocationHandle handle : handles) EXPECT_OK(cuMemRelease(handle));
  EXPECT_OK(cuMemAddressFree(address, handles.size() * chunk));
}

const void* kernel_image() {
  static const unsigned image[] = {0xba55ed50, 0x00100001, 0, 0};  // how a fat binary begins
  return image;
}

CUfunction kernel(CUmodule* module, const char* name) {
  CUfunction function = nullptr;
  EXPECT_OK(cuModuleLoadData(module, kernel_image()));
  EXPECT_OK(cuModuleGetFunction(&function, *module, name));
  return function;
}

CUresult launch(CUfunction kernel, CUstream stream, CUdeviceptr dst, CUdeviceptr left, CUdeviceptr right,
                size_t count) {
  gpurdma::ReduceArgs arguments = {};
  arguments.tasks[0] = {reinterpret_cast<void*>(dst), reinterpret_cast<void*>(left), reinterpret_cast<void*>(right),
                        count};
  void* parameters[] = {&arguments};
  return cuLaunchKernel(kernel, 2, 1, 1, 64, 1, 1, 0, stream, parameters, nullptr);
}

int main(int argc, char** argv) {
  setenv("GPURDMA_EMU_DEVICES", "2", 0);
  testing::InitGoogleTest(&argc, argv);
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  return RUN_ALL_TESTS();
}
