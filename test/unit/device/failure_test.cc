// Every function of the driver failing: an error with a line that says so, or no harm; nothing hangs, nothing leaks.
#include <set>
#include <sstream>

#include "rig.h"

namespace gpurdma::test {
namespace {

// All that src/device calls, but for what looks at pointers: a pointer that the driver does not know is host memory.
constexpr const char* kFunctions[] = {"cuDeviceGet",
                                      "cuDeviceGetAttribute",
                                      "cuDeviceGetName",
                                      "cuDevicePrimaryCtxGetState",
                                      "cuDevicePrimaryCtxRetain",
                                      "cuDriverGetVersion",
                                      "cuCtxGetId",
                                      "cuCtxPushCurrent",
                                      "cuThreadExchangeStreamCaptureMode",
                                      "cuMemAlloc",
                                      "cuMemHostRegister",
                                      "cuMemHostGetDevicePointer",
                                      "cuStreamCreateWithPriority",
                                      "cuStreamQuery",
                                      "cuStreamWaitEvent",
                                      "cuStreamIsCapturing",
                                      "cuStreamWriteValue32",
                                      "cuEventCreate",
                                      "cuEventRecord",
                                      "cuEventQuery",
                                      "cuMemcpyAsync",
                                      "cuMemcpy2DAsync",
                                      "cuModuleLoadData",
                                      "cuModuleGetFunction",
                                      "cuFuncLoad",
                                      "cuLaunchKernel"};

struct Usage {
  uint64_t memory, pinned;
};

Usage usage() {
  emu_counts counts;
  emu_get_counts(&counts);
  return {counts.memory.bytes, counts.pinned.bytes};
}

// Some of everything. What ends well must be right.
class Scenario {
 public:
  Scenario()
      : device_(Buffer::Kind::device, kBytes),
        out_(Buffer::Kind::device, kBytes),
        plain_(Buffer::Kind::plain, kBytes),
        pinned_(Buffer::Kind::pinned, kBytes) {
    device_.write(content_);
  }

  // The first error there was.
  Status run(Rig& rig, const std::string& where) {
    Status first = Status::ok;
    const auto see = [&](Status status) {
      if (first == Status::ok) first = status;
      return status == Status::ok;
    };
    const GpuId gpu = rig.gpus->place(device_.data());
    if (gpu == kHost) return Status::gpu;
    if (!see(rig.enter(gpu))) return first;
    must(cuMemsetD8Async(CUdeviceptr(out_.data()), 1, kBytes, nullptr));
    see(rig.enter(gpu));
    if (see(rig.copy(gpu, {plain_.data(), device_.data(), kBytes}))) {
      EXPECT_EQ(plain_.read(), content_) << where;
    }
    if (see(rig.copy(gpu, {pinned_.data(), device_.data(), kBytes}))) {
      EXPECT_EQ(pinned_.read(), content_) << where;
    }
    plain_.write(content_);
    if (see(rig.copy(gpu, {out_.data(), plain_.data(), 1000, 300, 1000, 1001}))) check_rows(where);
    if (see(rig.copy(gpu, {out_.data(), device_.data(), 1000, 300, 1000, 1001}))) check_rows(where);
    if (rig.gpus->reduces(gpu, Op::bxor, Type::int8)) {
      const GpuToken token = rig.next();
      Status status =
          rig.gpus->reduce(gpu, Op::bxor, Type::int8, out_.data(), device_.data(), device_.data(), kBytes, &rig, token);
      if (status == Status::ok) status = rig.wait(token);
      if (see(status)) {
        EXPECT_EQ(out_.read(), Bytes(kBytes, 0)) << where;
      }
    }
    void* const pinned = rig.gpus->take_pinned(5000);
    void* const block = rig.gpus->take(gpu, 5000);
    if (pinned) std::memset(pinned, 1, 5000);
    rig.gpus->give_pinned(pinned, 5000);
    if (block) rig.gpus->give(gpu, block, 5000);
    rig.gpus->trim();
    return first;
  }

 private:
  static constexpr size_t kBytes = 700000;

  void check_rows(const std::string& where) {
    Bytes got = out_.read(), expected;
    for (ptrdiff_t row = 0; row < 300; ++row)
      expected.insert(expected.end(), content_.begin() + row * 1001, content_.begin() + row * 1001 + 1000);
    got.resize(expected.size());
    EXPECT_EQ(got, expected) << where;
  }

  const Bytes content_ = random_bytes(kBytes, 7);
  const Buffer device_, out_, plain_, pinned_;
};

TEST(DeviceFailure, EveryFunctionAtItsFirstSecondAndLaterCall) {
  const Device device;
  Scenario scenario;
  for (const bool memory_is_written : {true, false}) {
    const std::string always = memory_is_written ? "" : ",cuStreamWriteValue32:1+:CUDA_ERROR_NOT_SUPPORTED";
    for (const char* function : kFunctions) {
      for (const char* nth : {"1", "2", "5", "1+"}) {
        const std::string where = std::string(function) + ":" + nth;
        const Lines lines;
        const Usage before = usage();
        {
          Rig rig;
          emu_fail((where + ":CUDA_ERROR_INVALID_VALUE" + always).c_str());
          const Status status = scenario.run(rig, where);
          EXPECT_TRUE(status == Status::ok || lines.size() > 0) << where << ": nothing was said";
          emu_fail(always.empty() ? nullptr : always.c_str() + 1);
          EXPECT_EQ(scenario.run(rig, where), Status::ok) << where << ": it did not recover\n" << lines.all();
        }
        emu_fail(nullptr);
        EXPECT_EQ(usage().memory, before.memory) << where;
        EXPECT_EQ(usage().pinned, before.pinned) << where;
        EXPECT_LT(lines.size(), 12u) << lines.all();
      }
    }
  }
}

TEST(DeviceFailure, AfterAStickyErrorTheGpuIsNotUsedAndOneLineSaysSo) {
  const Device device;
  Scenario scenario;
  for (const char* function : {"cuMemcpyAsync", "cuStreamWaitEvent", "cuStreamIsCapturing"}) {
    const Lines lines;
    Rig rig;
    emu_fail((std::string(function) + ":1:CUDA_ERROR_ILLEGAL_ADDRESS").c_str());
    EXPECT_EQ(scenario.run(rig, function), Status::gpu) << function;
    emu_fail(nullptr);
    EXPECT_EQ(scenario.run(rig, function), Status::gpu);
    EXPECT_EQ(lines.size(), 1u) << lines.all();
    EXPECT_NE(lines.all().find("any more"), std::string::npos) << lines.all();
  }
}

// A GPU that failed writes no more: asking the stream tells.
TEST(DeviceFailure, WorkThatNeverEndsIsNoticed) {
  const Device device;
  const Lines lines;
  Rig rig;
  const Buffer from(Buffer::Kind::device, 1000), to(Buffer::Kind::pinned, 1000);
  const GpuId gpu = rig.gpus->place(from.data());
  ASSERT_EQ(rig.enter(gpu), Status::ok);
  const GpuToken token = rig.next();
  ASSERT_EQ(rig.gpus->copy(gpu, {to.data(), from.data(), 1000}, &rig, token), Status::ok);
  emu_fail(
      "cuStreamWriteValue32:1+:CUDA_ERROR_INVALID_VALUE,cuEventRecord:1+:CUDA_ERROR_INVALID_VALUE,"
      "cuStreamQuery:1+:CUDA_ERROR_LAUNCH_FAILED");
  EXPECT_EQ(rig.wait(token), Status::gpu);
  emu_fail(nullptr);
  EXPECT_EQ(rig.copy(gpu, {to.data(), from.data(), 1000}), Status::gpu);
  EXPECT_EQ(lines.size(), 1u) << lines.all();
}

TEST(DeviceFailure, WorksWithEventsWhereStreamsCannotWriteMemory) {
  const Device device;
  emu_fail("cuStreamWriteValue32:1+:CUDA_ERROR_NOT_SUPPORTED");
  {
    Scenario scenario;
    Rig rig;
    for (int i = 0; i < 20; ++i) EXPECT_EQ(scenario.run(rig, "events"), Status::ok);
  }
  emu_fail("cuStreamWriteValue32:1+:CUDA_ERROR_NOT_SUPPORTED,cuEventCreate:2+:CUDA_ERROR_OUT_OF_MEMORY");
  {
    Scenario scenario;
    Rig rig;
    EXPECT_EQ(scenario.run(rig, "neither"), Status::ok);
  }
  emu_fail(nullptr);
}

TEST(DeviceFailure, AResetOfTheDeviceIsSurvived) {
  Rig rig;
  for (int round = 0; round < 3; ++round) {
    const Device device;
    {
      Scenario scenario;
      EXPECT_EQ(scenario.run(rig, "reset"), Status::ok);
    }
    must(cuDevicePrimaryCtxReset(device.device()));
  }
}

TEST(DeviceFailure, ACallersContextMayGoFirst) {
  const Device device;
  const Usage before = usage();
  {
    Rig rig;
    const CUcontext own = new_context(device.device());
    {
      Scenario scenario;
      EXPECT_EQ(scenario.run(rig, "own"), Status::ok);
    }
    must(cuCtxDestroy(own));
  }
  EXPECT_EQ(usage().memory, before.memory);
}

}  // namespace
}  // namespace gpurdma::test
