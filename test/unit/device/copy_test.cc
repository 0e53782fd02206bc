// Copies between all kinds of memory.
#include <algorithm>

#include "rig.h"

namespace gpurdma::test {
namespace {

TEST(DeviceCopy, BetweenAllKindsOfMemory) {
  const Device device;
  Rig rig;
  for (const Buffer::Kind from : Buffer::kAll) {
    for (const Buffer::Kind to : Buffer::kAll) {
      for (const size_t bytes : {size_t(1), size_t(4097), size_t(600001)}) {
        const Buffer src(from, bytes + 7), dst(to, bytes + 7);
        if (!src.on_device() && !dst.on_device()) continue;
        const GpuId gpu = rig.gpus->place(src.on_device() ? src.data() : dst.data());
        const Bytes content = random_bytes(bytes + 7, unsigned(bytes)), before(bytes + 7, 'x');
        src.write(content);
        dst.write(before);
        ASSERT_EQ(rig.copy(gpu, {dst.data() + 3, src.data() + 5, bytes}), Status::ok);
        Bytes expected = before;
        std::copy_n(content.begin() + 5, bytes, expected.begin() + 3);
        EXPECT_EQ(dst.read(), expected) << name_of(from) << " to " << name_of(to) << ", " << bytes;
      }
    }
  }
}

struct Shape {
  size_t width, rows, dst_pitch, src_pitch;
};

TEST(DeviceCopy, RowsTouchNothingBetweenThem) {
  const Device device;
  Rig rig;
  constexpr Shape shapes[] = {
      {8, 1000, 8, 24}, {24, 1000, 40, 24}, {1, 70000, 3, 2},           {300000, 5, 300001, 300008},
      {64, 3, 64, 64},  {16, 200, 16, 4},   {700000, 2, 700000, 900000}};
  using Kind = Buffer::Kind;
  for (const Shape& s : shapes) {
    for (const auto& [from, to] : {std::pair(Kind::device, Kind::plain), std::pair(Kind::plain, Kind::device),
                                   std::pair(Kind::device, Kind::device), std::pair(Kind::device, Kind::pinned),
                                   std::pair(Kind::pinned, Kind::mapped)}) {
      const size_t src_bytes = (s.rows - 1) * s.src_pitch + s.width, dst_bytes = (s.rows - 1) * s.dst_pitch + s.width;
      const Buffer src(from, src_bytes), dst(to, dst_bytes);
      const Bytes content = random_bytes(src_bytes, 2);
      Bytes expected(dst_bytes, 'x');
      src.write(content);
      dst.write(expected);
      for (size_t row = 0; row < s.rows; ++row)
        std::copy_n(content.begin() + ptrdiff_t(row * s.src_pitch), s.width,
                    expected.begin() + ptrdiff_t(row * s.dst_pitch));
      const GpuId gpu = rig.gpus->place(src.on_device() ? src.data() : dst.data());
      ASSERT_EQ(rig.copy(gpu, {dst.data(), src.data(), s.width, s.rows, s.dst_pitch, s.src_pitch}), Status::ok);
      EXPECT_EQ(dst.read(), expected) << name_of(from) << " to " << name_of(to) << " " << s.width << " x " << s.rows;
    }
  }
}

TEST(DeviceCopy, BetweenDevicesAndWhenHostMemoryIsRegisteredInParts) {
  const Device first(0);
  Rig rig;
  const Bytes content = random_bytes(1 << 20, 3);
  const Buffer here(Buffer::Kind::device, content.size());
  here.write(content);
  {
    const Device second(1);
    const Buffer there(Buffer::Kind::device, content.size()), pool(Buffer::Kind::pool, content.size());
    ASSERT_EQ(rig.copy(rig.gpus->place(here.data()), {there.data(), here.data(), content.size()}), Status::ok);
    EXPECT_EQ(there.read(), content);
    ASSERT_EQ(rig.copy(rig.gpus->place(there.data()), {pool.data(), there.data() + 256, 256, 100, 256, 512}),
              Status::ok);
    Bytes expected;
    for (size_t row = 0; row < 100; ++row)
      expected.insert(expected.end(), content.begin() + ptrdiff_t(256 + row * 512),
                      content.begin() + ptrdiff_t(512 + row * 512));
    Bytes got = pool.read();
    got.resize(expected.size());
    EXPECT_EQ(got, expected);
  }
  const Buffer host(Buffer::Kind::plain, content.size());
  must(cuMemHostRegister(host.data(), 4096, 0));
  ASSERT_EQ(rig.copy(0, {host.data(), here.data(), content.size()}), Status::ok);
  EXPECT_EQ(host.read(), content);
  char* const end = host.data() + content.size() - 4096;
  must(cuMemHostRegister(end, 4096, 0));
  host.write(Bytes(content.size(), 'x'));
  ASSERT_EQ(rig.copy(0, {host.data(), here.data(), content.size()}), Status::ok);
  EXPECT_EQ(host.read(), content);
  must(cuMemHostUnregister(host.data()));
  must(cuMemHostUnregister(end));
}

TEST(DeviceCopy, ManyAtOnceAndEmptyOnes) {
  const Device device;
  Rig rig;
  constexpr size_t n = 40, bytes = 300000;
  const Buffer src(Buffer::Kind::device, n * bytes), host(Buffer::Kind::plain, n * bytes),
      pinned(Buffer::Kind::pinned, n * bytes), back(Buffer::Kind::device, n * bytes);
  const Bytes content = random_bytes(n * bytes, 4);
  src.write(content);
  ASSERT_EQ(rig.gpus->place(src.data()), 0);
  std::vector<GpuToken> tokens;
  for (size_t i = 0; i < n; ++i) {
    for (const Buffer* dst : {&host, &pinned, &back}) {
      tokens.push_back(rig.next());
      ASSERT_EQ(rig.gpus->copy(0, {dst->data() + i * bytes, src.data() + i * bytes, bytes}, &rig, tokens.back()),
                Status::ok);
    }
  }
  for (const GpuToken token : tokens) EXPECT_EQ(rig.wait(token), Status::ok);
  EXPECT_EQ(host.read(), content);
  EXPECT_EQ(pinned.read(), content);
  EXPECT_EQ(back.read(), content);
  EXPECT_EQ(rig.copy(0, {host.data(), src.data(), 0}), Status::ok);
  EXPECT_EQ(rig.copy(0, {host.data(), src.data(), 8, 0, 8, 8}), Status::ok);
}

// Pinned memory is copied once and straight; pageable memory as often, but through pinned pieces.
TEST(DeviceCopy, PageableMemoryIsNeverHandedToTheDriver) {
  const Device device;
  Rig rig;
  const Buffer src(Buffer::Kind::device, 1 << 20), host(Buffer::Kind::plain, 1 << 20);
  ASSERT_EQ(rig.gpus->place(src.data()), 0);
  emu_reset_counts();
  ASSERT_EQ(rig.copy(0, {host.data(), src.data(), 1 << 20}), Status::ok);
  ASSERT_EQ(rig.copy(0, {src.data(), host.data(), 1 << 20}), Status::ok);
  emu_counts counts;
  emu_get_counts(&counts);
  EXPECT_EQ(counts.down_pinned.bytes, size_t(1) << 20);
  EXPECT_EQ(counts.up_pinned.bytes, size_t(1) << 20);
  EXPECT_EQ(counts.down_pageable.copies + counts.up_pageable.copies, 0u);
  EXPECT_EQ(counts.waits, 0u);
}

}  // namespace
}  // namespace gpurdma::test
