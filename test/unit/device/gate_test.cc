// What the application has queued on its default stream is waited for; its captures are left alone.
#include <atomic>

#include "rig.h"

namespace gpurdma::test {
namespace {

// Work on a stream that lasts until it is let go.
class Hold {
 public:
  explicit Hold(CUstream stream) {
    must(cuLaunchHostFunc(
        stream,
        [](void* hold) {
          while (!static_cast<Hold*>(hold)->gone_) {
          }
        },
        this));
  }
  void let_go() { gone_ = true; }

 private:
  std::atomic<bool> gone_{false};
};

TEST(DeviceGate, WaitsForTheDefaultStream) {
  const Device device;
  Rig rig;
  const Buffer buffer(Buffer::Kind::device, 1000), host(Buffer::Kind::plain, 1000);
  const GpuId gpu = rig.gpus->place(buffer.data());
  ASSERT_EQ(rig.enter(gpu), Status::ok);
  buffer.write(Bytes(1000, 'a'));
  Hold hold(nullptr);
  must(cuMemsetD8Async(CUdeviceptr(buffer.data()), 'b', 1000, nullptr));
  Status status = Status::ok;
  const GpuToken token = rig.next();
  ASSERT_FALSE(rig.gpus->enter(gpu, &rig, token, &status));
  ASSERT_EQ(status, Status::ok);
  for (int i = 0; i < 1000; ++i) rig.gpus->progress();
  EXPECT_FALSE(rig.told(token));
  hold.let_go();
  EXPECT_EQ(rig.wait(token), Status::ok);
  EXPECT_EQ(rig.copy(gpu, {host.data(), buffer.data(), 1000}), Status::ok);
  EXPECT_EQ(host.read(), Bytes(1000, 'b'));
  must(cuStreamSynchronize(nullptr));
  const GpuToken idle = rig.next();
  EXPECT_TRUE(rig.gpus->enter(gpu, &rig, idle, &status));
}

TEST(DeviceGate, NoneAsTheSettingSays) {
  const Device device;
  GpuSettings settings;
  settings.waits_for_default_stream = false;
  Rig rig(settings);
  const Buffer buffer(Buffer::Kind::device, 1000);
  Hold hold(nullptr);
  Status status = Status::invalid;
  EXPECT_TRUE(rig.gpus->enter(rig.gpus->place(buffer.data()), &rig, rig.next(), &status));
  EXPECT_EQ(status, Status::ok);
  hold.let_go();
  must(cuStreamSynchronize(nullptr));
}

TEST(DeviceGate, NonBlockingStreamsOfTheApplicationNeitherHoldUsUpNorWait) {
  const Device device;
  Rig rig;
  const Buffer buffer(Buffer::Kind::device, 1000), host(Buffer::Kind::plain, 1000);
  buffer.write(Bytes(1000, 'a'));
  CUstream theirs;
  must(cuStreamCreate(&theirs, CU_STREAM_NON_BLOCKING));
  Hold hold(theirs);
  const GpuId gpu = rig.gpus->place(buffer.data());
  EXPECT_EQ(rig.enter(gpu), Status::ok);
  EXPECT_EQ(rig.copy(gpu, {host.data(), buffer.data(), 1000}), Status::ok);
  EXPECT_EQ(host.read(), Bytes(1000, 'a'));
  hold.let_go();
  must(cuStreamSynchronize(theirs));
  must(cuStreamDestroy(theirs));
}

TEST(DeviceGate, ACaptureGoesOn) {
  const Device device;
  Rig rig;
  const Buffer buffer(Buffer::Kind::device, 1000), host(Buffer::Kind::plain, 1000);
  buffer.write(Bytes(1000, 'a'));
  for (const unsigned flags : {unsigned(CU_STREAM_DEFAULT), unsigned(CU_STREAM_NON_BLOCKING)}) {
    for (const CUstreamCaptureMode mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
      CUstream stream;
      CUgraph graph = nullptr;
      must(cuStreamCreate(&stream, flags));
      must(cuStreamBeginCapture(stream, mode));
      {
        // A new one, so that memory, streams and kernels are made during the capture.
        Rig fresh;
        const GpuId gpu = fresh.gpus->place(buffer.data());
        EXPECT_EQ(fresh.enter(gpu), Status::ok);
        EXPECT_EQ(fresh.copy(gpu, {host.data(), buffer.data(), 1000}), Status::ok);
        (void)fresh.gpus->reduces(gpu, Op::sum, Type::float32);
        void* const block = fresh.gpus->take(gpu, 1000);
        EXPECT_NE(block, nullptr);
        fresh.gpus->give(gpu, block, 1000);
      }
      EXPECT_EQ(host.read(), Bytes(1000, 'a'));
      must(cuMemsetD8Async(CUdeviceptr(buffer.data()), 'a', 1000, stream));
      EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS) << "the capture was disturbed";
      if (graph) must(cuGraphDestroy(graph));
      must(cuStreamDestroy(stream));
    }
  }
}

}  // namespace
}  // namespace gpurdma::test
