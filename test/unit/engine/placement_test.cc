#include "engine/placement.h"

#include <gtest/gtest.h>

#include "test/unit/engine/scripted_gpus.h"

namespace gpurdma {
namespace {

using Kind = Placement::Kind;

struct Fixture : ::testing::Test {
  ~Fixture() override {
    EXPECT_EQ(gpus.held, 0u);
    EXPECT_EQ(memory.in_use(), 0u);
  }

  // Where a call with these operands works. Both 4,000 bytes of int32.
  Placement place(GpuId in_at, GpuId out_at, bool in_place = false) {
    gpus.places.clear();
    gpus.places[in] = in_at;
    gpus.places[out] = out_at;
    Placement placement;
    EXPECT_EQ(placer.place(operands(in_place), &placement), Status::ok);
    return placement;
  }
  Operands operands(bool in_place) { return {in_place ? out : in, out, 1000, 4, Op::sum, Type::int32}; }

  int32_t in[1000], out[1000];
  ScriptedGpus gpus;
  Memory memory{0};
  Placer placer{&gpus, memory, {false, 1000}};
};

void expect_copy(const GpuCopy& copy, const void* dst, const void* src) {
  EXPECT_EQ(copy.dst, dst);
  EXPECT_EQ(copy.src, src);
  EXPECT_EQ(copy.width, 4000u);
}

using Place = Fixture;

TEST_F(Place, HostMemoryStaysWhereItIs) {
  const Placement p = place(kHost, kHost);
  EXPECT_EQ(p.kind, Kind::host);
  EXPECT_EQ(p.input, in);
  EXPECT_EQ(p.output, out);
  EXPECT_EQ(place(kHost, kHost, true).input, nullptr);
  Placement none;
  EXPECT_EQ(Placer(nullptr, memory, {}).place(operands(false), &none), Status::ok);
  EXPECT_EQ(none.kind, Kind::host);
}

TEST_F(Place, LargeOperandsOnOneGpuAreLeftThere) {
  const Placement p = place(1, 1);
  EXPECT_EQ(p.kind, Kind::resident);
  EXPECT_EQ(p.gpu, 1);
  EXPECT_EQ(p.input, in);
  EXPECT_EQ(p.output, out);
  EXPECT_EQ(p.enter.width + p.leave.width, 0u);
  EXPECT_EQ(place(1, 1, true).input, nullptr);
}

TEST_F(Place, AnInputFromElsewhereIsCopiedToTheOutput) {
  for (const GpuId from : {kHost, GpuId(0)}) {
    const Placement p = place(from, 1);
    EXPECT_EQ(p.kind, Kind::resident);
    EXPECT_EQ(p.gpu, 1);
    EXPECT_EQ(p.other, from);
    EXPECT_EQ(p.input, nullptr) << "in place";
    expect_copy(p.enter, out, in);
  }
}

TEST_F(Place, OutputInHostMemoryIsWorkedOnThere) {
  const Placement p = place(1, kHost);
  EXPECT_EQ(p.kind, Kind::mirror);
  EXPECT_EQ(p.gpu, 1);
  EXPECT_EQ(p.mirror, nullptr);
  EXPECT_EQ(p.input, nullptr);
  EXPECT_EQ(p.output, out);
  expect_copy(p.enter, out, in);
  EXPECT_EQ(p.leave.width, 0u);
}

TEST_F(Place, WhatIsSmallOrHasNoKernelIsMirrored) {
  for (const bool small : {true, false}) {
    Placer other(&gpus, memory, {false, small ? size_t{4000} : size_t{0}});
    gpus.has_kernels = small;
    gpus.places = {{in, 0}, {out, 0}};
    Placement p;
    EXPECT_EQ(other.place(operands(false), &p), Status::ok);
    EXPECT_EQ(p.kind, Kind::mirror);
    EXPECT_TRUE(p.pinned_mirror);
    EXPECT_EQ(p.input, nullptr);
    EXPECT_EQ(p.output, p.mirror);
    expect_copy(p.enter, p.mirror, in);
    expect_copy(p.leave, out, p.mirror);
    other.release(p);
  }
}

TEST_F(Place, MemoryThatTheDriverDoesNotKnowIsNotTouched) {
  gpus.places = {{in, kUnknown}, {out, 0}};
  Placement p;
  EXPECT_EQ(placer.place(operands(false), &p), Status::gpu);
  EXPECT_EQ(placer.mirror(operands(false), &p), Status::gpu);
  EXPECT_EQ(p.output, nullptr);
}

TEST_F(Place, AnInputInHostMemoryNeedsNoCopyToTheMirror) {
  gpus.has_kernels = false;
  Placement p = place(kHost, 0);
  EXPECT_EQ(p.input, in);
  EXPECT_EQ(p.enter.width, 0u);
  expect_copy(p.leave, out, p.mirror);
  placer.release(p);
}

TEST_F(Place, AMirrorMayLieInPageableMemory) {
  gpus.has_kernels = false;
  gpus.pinned_is_short = true;
  Placement p = place(0, 0);
  EXPECT_FALSE(p.pinned_mirror);
  EXPECT_GE(memory.in_use(), 4000u);
  placer.release(p);
  Memory none(0, 0);
  EXPECT_EQ(Placer(&gpus, none, {true, 0}).place(operands(false), &p), Status::no_memory);
}

TEST_F(Place, ScratchThatIsShortLeadsToAMirror) {
  Placement p = place(0, 0);
  EXPECT_TRUE(placer.take_scratch(p, 0));
  gpus.device_is_short = true;
  EXPECT_FALSE(placer.take_scratch(p, 100));
  EXPECT_EQ(placer.mirror(operands(false), &p), Status::ok);
  EXPECT_EQ(p.kind, Kind::mirror);
  placer.release(p);
  gpus.device_is_short = false;
  p = place(0, 0);
  EXPECT_TRUE(placer.take_scratch(p, 100));
  EXPECT_EQ(gpus.held, 1u);
  placer.release(p);
}

}  // namespace
}  // namespace gpurdma
