// Streams: work is done later, in the order that streams, events and the legacy stream give it, and not in another.
#include <time.h>

#include <memory>

#include "emu/emu.h"
#include "emu/emu_test.h"

namespace {

constexpr size_t kCount = 1000, kBytes = kCount * sizeof(int);
const auto kExited = testing::ExitedWithCode(0);

void sleep_ms(int ms) {
  const timespec time = {0, ms * 1000000l};
  nanosleep(&time, nullptr);
}

TEST(EmuDeath, ShowsOldDataToWhoDoesNotWait) {
  EXPECT_EXIT(
      {
        setenv("GPURDMA_EMU_DELAY", "5000", 1);
        use_device();
        CUstream stream = new_stream();
        Pinned source(kCount, 1);
        Pinned target(kCount, 0);
        const CUdeviceptr device = device_memory(kBytes);
        int old = 0;
        for (int round = 1; round <= 30; ++round) {
          source[0] = round;
          REQUIRE(cuMemcpyAsync(device, source.address(), kBytes, stream) == CUDA_SUCCESS);
          REQUIRE(cuMemcpyAsync(target.address(), device, kBytes, stream) == CUDA_SUCCESS);
          old += target[0] != round ? 1 : 0;
          REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
          REQUIRE(target[0] == round);
        }
        REQUIRE(old >= 24);
        exit(0);
      },
      kExited, "");
}

TEST(EmuOrder, ReadsPinnedMemoryLateAndPageableAtOnce) {
  use_device();
  CUstream stream = new_stream();
  Pinned pinned(kCount, 1), result(2);
  std::vector<int> pageable(kCount, 1);
  const CUdeviceptr a = device_memory(kBytes), b = device_memory(kBytes);
  EXPECT_OK(cuMemcpyAsync(b, reinterpret_cast<CUdeviceptr>(pageable.data()), kBytes, stream));
  pageable[0] = 2;
  {
    Hold hold(stream);
    EXPECT_OK(cuMemcpyAsync(a, pinned.address(), kBytes, stream));
    pinned[0] = 2;
  }
  EXPECT_OK(cuMemcpyAsync(result.address(), a, sizeof(int), stream));
  EXPECT_OK(cuMemcpyAsync(result.address() + sizeof(int), b, sizeof(int), stream));
  EXPECT_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(2, result[0]);
  EXPECT_EQ(1, result[1]);
  EXPECT_OK(cuMemFree(a));
  EXPECT_OK(cuMemFree(b));
  EXPECT_OK(cuStreamDestroy(stream));
}

TEST(EmuOrder, DoesStreamsSideBySide) {
  use_device();
  CUstream held = new_stream(), other = new_stream();
  Pinned value(1, 0);
  Hold hold(held);
  EXPECT_EQ(CUDA_ERROR_NOT_READY, cuStreamQuery(held));
  EXPECT_OK(cuStreamWriteValue32(other, value.address(), 3, 0));
  EXPECT_OK(cuStreamSynchronize(other));
  EXPECT_EQ(3, value[0]);
  EXPECT_EQ(CUDA_ERROR_NOT_READY, cuStreamQuery(held));
  hold.let_go();
  EXPECT_TRUE(ends([&] { return cuStreamQuery(held); }));
  EXPECT_OK(cuStreamDestroy(held));
  EXPECT_OK(cuStreamDestroy(other));
}

TEST(EmuOrder, WaitsForEvents) {
  use_device();
  CUstream first = new_stream(), second = new_stream();
  CUevent event;
  EXPECT_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  EXPECT_OK(cuEventQuery(event));  // never recorded
  Pinned value(1, 0);
  Hold hold(first);
  EXPECT_OK(cuEventRecord(event, first));
  EXPECT_OK(cuStreamWaitEvent(second, event, 0));
  EXPECT_OK(cuStreamWriteValue32(second, value.address(), 1, 0));
  sleep_ms(5);
  EXPECT_EQ(CUDA_ERROR_NOT_READY, cuEventQuery(event));
  EXPECT_EQ(0, value[0]);
  hold.let_go();
  EXPECT_OK(cuStreamSynchronize(second));
  EXPECT_EQ(1, value[0]);
  EXPECT_OK(cuEventQuery(event));
  EXPECT_OK(cuEventDestroy(event));
  EXPECT_OK(cuStreamDestroy(first));
  EXPECT_OK(cuStreamDestroy(second));
}

// Whether work in `later` is done within so many milliseconds although `earlier` is held up.
bool passes(CUstream earlier, CUstream later, int ms) {
  Pinned value(1, 0);
  Hold hold(earlier);
  EXPECT_OK(cuStreamWriteValue32(later, value.address(), 1, 0));
  const auto done = [&] { return __atomic_load_n(&value[0], __ATOMIC_ACQUIRE) == 1; };
  for (int waited = 0; waited < ms && !done(); ++waited) sleep_ms(1);
  const bool passed = done();
  hold.let_go();
  EXPECT_OK(cuCtxSynchronize());
  EXPECT_TRUE(done());
  return passed;
}

bool waits(CUstream earlier, CUstream later) { return !passes(earlier, later, 10); }

TEST(EmuOrder, KnowsTheLegacyStream) {
  use_device();
  CUstream blocking = new_stream(CU_STREAM_DEFAULT), another = new_stream(CU_STREAM_DEFAULT);
  CUstream aside = new_stream(CU_STREAM_NON_BLOCKING);
  EXPECT_TRUE(waits(nullptr, blocking));
  EXPECT_TRUE(waits(blocking, nullptr));
  EXPECT_TRUE(waits(blocking, CU_STREAM_LEGACY));
  EXPECT_TRUE(waits(nullptr, CU_STREAM_PER_THREAD));
  EXPECT_TRUE(passes(blocking, another, 10000));
  EXPECT_TRUE(passes(nullptr, aside, 10000));
  EXPECT_TRUE(passes(aside, nullptr, 10000));
  {
    Hold hold(blocking);
    EXPECT_EQ(CUDA_ERROR_NOT_READY, cuStreamQuery(nullptr));
  }
  for (CUstream stream : {blocking, another, aside}) EXPECT_OK(cuStreamDestroy(stream));
}

TEST(EmuOrder, CopiesWithinADeviceWithoutWaiting) {
  use_device();
  const CUdeviceptr a = device_memory(kBytes), b = device_memory(kBytes);
  Pinned value(1, 0);
  Hold hold(nullptr);
  emu_reset_counts();
  EXPECT_OK(cuMemcpyDtoD(a, b, kBytes));
  EXPECT_OK(cuMemsetD32(a, 5, kCount));
  emu_counts counts;
  emu_get_counts(&counts);
  EXPECT_EQ(0u, counts.waits);
  hold.let_go();
  EXPECT_OK(cuMemcpyDtoH(value.data(), a + 40, sizeof(int)));
  EXPECT_EQ(5, value[0]);
  EXPECT_OK(cuMemFree(a));
  EXPECT_OK(cuMemFree(b));
}

TEST(EmuDeath, KnowsDestroyedStreamsAndEvents) {
  EXPECT_DEATH(
      {
        use_device();
        CUstream stream = new_stream();
        cuStreamDestroy(stream);
        cuStreamQuery(stream);
      },
      "cuStreamQuery: .* no stream, or was destroyed");
  EXPECT_DEATH(
      {
        use_device();
        CUevent event;
        cuEventCreate(&event, 0);
        cuEventDestroy(event);
        cuEventRecord(event, nullptr);
      },
      "cuEventRecord: .* no event, or was destroyed");
  EXPECT_DEATH(
      {
        use_device(0);
        CUevent event;
        cuEventCreate(&event, 0);
        use_device(1);
        cuEventRecord(event, nullptr);
      },
      "event and stream are of different contexts");
}

TEST(EmuDeath, RefusesTheDriverInAHostFunction) {
  EXPECT_DEATH(
      {
        use_device();
        cuLaunchHostFunc(
            nullptr, [](void*) { cuCtxSynchronize(); }, nullptr);
        cuCtxSynchronize();
      },
      "cuCtxSynchronize was called from a host function");
}

class EmuCapture : public testing::Test {
 protected:
  void SetUp() override {
    use_device();
    value_ = std::make_unique<Pinned>(1, 0);
    stream_ = new_stream(CU_STREAM_DEFAULT);
    EXPECT_OK(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_OK(cuStreamWriteValue32(stream_, value_->address(), 1, 0));
  }
  void TearDown() override {
    value_.reset();
    EXPECT_OK(cuStreamDestroy(stream_));
  }
  CUresult end(CUgraph* graph) { return cuStreamEndCapture(stream_, graph); }
  CUstreamCaptureStatus status() const {
    CUstreamCaptureStatus status;
    EXPECT_OK(cuStreamIsCapturing(stream_, &status));
    return status;
  }
  void expect_spoilt() {
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_INVALIDATED, status());
    CUgraph graph;
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end(&graph));
  }

  CUstream stream_ = nullptr;
  std::unique_ptr<Pinned> value_;
};

TEST_F(EmuCapture, DoesNothingUntilItIsLaunched) {
  CUstream other = new_stream(CU_STREAM_NON_BLOCKING);  // free of the capture
  CUgraph graph = nullptr;
  CUgraphExec executable;
  EXPECT_OK(end(&graph));
  sleep_ms(5);
  EXPECT_EQ(0, (*value_)[0]);
  EXPECT_OK(cuGraphInstantiate(&executable, graph, 0));
  EXPECT_OK(cuGraphLaunch(executable, other));
  EXPECT_OK(cuStreamSynchronize(other));
  EXPECT_EQ(1, (*value_)[0]);
  EXPECT_OK(cuGraphExecDestroy(executable));
  EXPECT_OK(cuGraphDestroy(graph));
  EXPECT_OK(cuStreamDestroy(other));
}

TEST_F(EmuCapture, IsSpoiltByTheLegacyStream) {
  CUstreamCaptureStatus of_legacy;
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(nullptr, &of_legacy));
  EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_ACTIVE, status());  // asking does no harm
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamWriteValue32(nullptr, value_->address(), 1, 0));
  expect_spoilt();
}

TEST_F(EmuCapture, IsSpoiltByQuestions) {
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(stream_));
  expect_spoilt();
}

TEST_F(EmuCapture, IsSpoiltByAnAllocationUnlessRelaxed) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  EXPECT_OK(cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_OK(cuMemFree(device_memory(kBytes)));
  EXPECT_OK(cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(CU_STREAM_CAPTURE_MODE_RELAXED, mode);
  EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_ACTIVE, status());
  CUdeviceptr address;
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&address, kBytes));
  expect_spoilt();
}

TEST_F(EmuCapture, TakesInStreamsThatWaitForIt) {
  CUstream joins = new_stream();
  CUevent fork, join;
  EXPECT_OK(cuEventCreate(&fork, 0));
  EXPECT_OK(cuEventCreate(&join, 0));
  EXPECT_OK(cuEventRecord(fork, stream_));
  EXPECT_OK(cuStreamWaitEvent(joins, fork, 0));
  EXPECT_OK(cuStreamWriteValue32(joins, value_->address(), 2, 0));
  EXPECT_EQ(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(fork));
  EXPECT_OK(cuEventRecord(join, joins));
  EXPECT_OK(cuStreamWaitEvent(stream_, join, 0));
  CUgraph graph;
  EXPECT_OK(end(&graph));
  size_t nodes = 0;
  EXPECT_OK(cuGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(2u, nodes);
  EXPECT_OK(cuGraphDestroy(graph));
  EXPECT_OK(cuEventDestroy(fork));
  EXPECT_OK(cuEventDestroy(join));
  EXPECT_OK(cuStreamDestroy(joins));
}

}  // namespace
