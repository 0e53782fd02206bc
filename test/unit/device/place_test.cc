// Which GPU memory lies on.
#include <thread>

#include "rig.h"

namespace gpurdma::test {
namespace {

TEST(DevicePlace, EveryKindOfMemory) {
  const Device device;
  Rig rig;
  for (const Buffer::Kind kind : Buffer::kAll) {
    const Buffer buffer(kind, 3 << 20);
    const GpuId expected = buffer.on_device() ? 0 : kHost;
    EXPECT_EQ(rig.gpus->place(buffer.data()), expected) << name_of(kind);
    EXPECT_EQ(rig.gpus->place(buffer.data() + buffer.bytes() - 1), expected) << name_of(kind);
  }
  int on_stack = 0;
  EXPECT_EQ(rig.gpus->place(&on_stack), kHost);
  EXPECT_EQ(rig.gpus->place(nullptr), kHost);
}

TEST(DevicePlace, AnotherDeviceThanTheCurrentOneAndAThreadWithoutContext) {
  const Device first(0);
  Rig rig;
  const Buffer here(Buffer::Kind::device, 100);
  auto second = std::make_unique<Device>(1);
  const Buffer there(Buffer::Kind::device, 100), pool(Buffer::Kind::pool, 100), mapped(Buffer::Kind::mapped, 100, 1);
  GpuId ids[4];
  std::thread([&] {
    const Buffer* buffers[] = {&here, &there, &pool, &mapped};
    for (int i = 0; i < 4; ++i) ids[i] = rig.gpus->place(buffers[i]->data());
  }).join();
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_EQ(ids[1], ids[2]);
  EXPECT_EQ(ids[1], ids[3]);
  EXPECT_EQ(rig.gpus->place(here.data()), ids[0]);
}

TEST(DevicePlace, AContextOfTheApplicationsOwnIsAGpuOfItsOwn) {
  const Device device;
  const CUcontext own = new_context(device.device());
  CUcontext popped;
  {
    Rig rig;
    const Buffer in_own(Buffer::Kind::device, 100);
    must(cuCtxPopCurrent(&popped));
    const Buffer in_primary(Buffer::Kind::device, 100);
    EXPECT_NE(rig.gpus->place(in_own.data()), rig.gpus->place(in_primary.data()));
    // Both work, side by side, whichever is current.
    const Bytes content = random_bytes(100, 1);
    in_own.write(content);
    EXPECT_EQ(rig.copy(rig.gpus->place(in_own.data()), {in_primary.data(), in_own.data(), 100}), Status::ok);
    EXPECT_EQ(in_primary.read(), content);
    must(cuCtxPushCurrent(own));
  }
  must(cuCtxPopCurrent(&popped));
  must(cuCtxDestroy(own));
}

TEST(DevicePlace, LeavesTheCallersContextAndCaptureModeAlone) {
  const Device device(1);
  Rig rig;
  CUcontext current;
  const Buffer buffer(Buffer::Kind::device, 1000), host(Buffer::Kind::plain, 1000);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  must(cuThreadExchangeStreamCaptureMode(&mode));
  std::thread([&] {
    const GpuId gpu = rig.gpus->place(buffer.data());
    EXPECT_EQ(rig.enter(gpu), Status::ok);
    EXPECT_EQ(rig.copy(gpu, {host.data(), buffer.data(), 1000}), Status::ok);
    CUcontext none = CUcontext(1);
    must(cuCtxGetCurrent(&none));
    EXPECT_EQ(none, nullptr);
  }).join();
  EXPECT_EQ(rig.copy(rig.gpus->place(buffer.data()), {host.data(), buffer.data(), 1000}), Status::ok);
  must(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, device.context());
  must(cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

}  // namespace
}  // namespace gpurdma::test
