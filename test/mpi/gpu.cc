// What must hold for device memory beside right results, seen with the software CUDA driver's own eyes: what it counts
// (test/emu/emu.h), and calls that it makes fail.
//
//   gpu_copies                 copies per byte are those of the path
//   gpu_rounds [--rounds N]    allocate, reduce, free: memory of ours stays flat
//   gpu_faults [--rank R]      every driver function fails once on that rank: an error there, no hang, and a call
//                              that works afterwards
#include <unistd.h>

#include "device.h"
#include "test/emu/emu.h"
#include "tests.h"

namespace {

using check::expect;
using device::driver;
using device::Kind;

// The software driver, or a skip.
struct Emulator {
  void (*counts)(emu_counts*) = nullptr;
  void (*reset)() = nullptr;
  void (*fail)(const char*) = nullptr;

  bool open() {
    counts = (decltype(counts))driver.symbol("emu_get_counts");
    reset = (decltype(reset))driver.symbol("emu_reset_counts");
    fail = (decltype(fail))driver.symbol("emu_fail");
    if (counts && reset && fail) return true;
    if (check::rank == 0) printf("SKIP %s: this needs the software CUDA driver\n", check::program);
    return false;
  }
  emu_counts now() const {
    emu_counts c;
    counts(&c);
    return c;
  }
};

// Sums of small integers in floats, whose right value is known: element i of rank r is i % 13 + r.
std::vector<float> operand(size_t count, int rank) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = float(i % 13) + float(rank);
  return values;
}

bool is_sum(const std::vector<float>& values) {
  const float ranks = float(check::size * (check::size - 1)) / 2;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] != float(i % 13) * float(check::size) + ranks) return false;
  return true;
}

struct Memory {
  Memory(Kind kind, size_t count) : kind(kind), count(count), at(driver.allocate(kind, count * sizeof(float))) {}
  ~Memory() { driver.free_memory(kind, at); }
  void put(const std::vector<float>& values) { driver.put(kind, at, values.data(), count * sizeof(float)); }
  std::vector<float> get() {
    std::vector<float> values(count);
    driver.fetch(kind, values.data(), at, count * sizeof(float));
    return values;
  }
  const Kind kind;
  const size_t count;
  void* const at;
};

int skip() {
  MPI_Finalize();
  driver.close();
  return 77;
}

}  // namespace

// Of what this rank moves itself. bytes: of the operand; n ranks.
int tests::gpu_copies() {
  device::start();
  Emulator emulator;
  if (!emulator.open()) return skip();
  const size_t count = (size_t)check::number("--count", 1 << 20), bytes = count * sizeof(float);
  const bool mirror = check::text("--path") == "mirror";
  for (int round = 0; round < 3; ++round) {  // the first one also makes what all need
    Memory in(Kind::device, count), out(Kind::device, count);
    in.put(operand(count, check::rank));
    emulator.reset();
    MPI_Allreduce(in.at, out.at, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const emu_counts c = emulator.now();
    expect(is_sum(out.get()), "round %d: wrong result", round);
    // A ring sends and receives 2 (n - 1) of n blocks, and reduces n - 1 of them.
    const size_t moved = mirror ? bytes : 2 * (bytes / check::size) * (check::size - 1);
    expect(c.down_pinned.bytes == moved, "%llu bytes copied down, not %zu", (unsigned long long)c.down_pinned.bytes,
           moved);
    expect(c.up_pinned.bytes == moved, "%llu bytes copied up, not %zu", (unsigned long long)c.up_pinned.bytes, moved);
    expect(c.down_pageable.bytes == 0 && c.up_pageable.bytes == 0, "pageable memory was copied");
    expect(c.within.bytes == (mirror ? 0 : bytes / check::size) || c.within.bytes == 0,
           "%llu bytes copied within the device", (unsigned long long)c.within.bytes);
    const size_t reduced = mirror ? 0 : 3 * (bytes / check::size) * (check::size - 1);  // two read, one written
    expect(c.launches.bytes == reduced, "kernels touched %llu bytes, not %zu", (unsigned long long)c.launches.bytes,
           reduced);
  }
  return device::finish();
}

int tests::gpu_rounds() {
  device::start();
  Emulator emulator;
  if (!emulator.open()) return skip();
  const long rounds = check::number("--rounds", 1000);
  emu_counts before{};
  check::Random random(0), own(0);
  for (long round = 0; round < rounds; ++round) {
    if (round % (rounds / 4) == 0) {                       // the same again: what it needs is there
      random = check::Random(check::mix(check::seed, 7));  // alike on all ranks
      own = check::Random(check::mix(check::seed, 8, check::rank));
    }
    const size_t count = random.between(1, random.below(4) ? 3000 : 300000), offset = own.below(64);
    {
      Memory in(Kind::device, count + offset), out(own.below(4) ? Kind::device : Kind::pinned, count + offset);
      std::vector<float> values(offset, -1), mine = operand(count, check::rank);
      values.insert(values.end(), mine.begin(), mine.end());
      in.put(values);
      MPI_Allreduce((float*)in.at + offset, (float*)out.at + offset, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      std::vector<float> result = out.get();
      result.erase(result.begin(), result.begin() + (ptrdiff_t)offset);
      expect(is_sum(result), "round %ld, %zu elements: wrong result", round, count);
    }
    if (round == rounds / 2) before = emulator.now();
  }
  const emu_counts after = emulator.now();
  expect(after.memory.bytes <= before.memory.bytes + before.memory.bytes / 4, "device memory in use grew: %llu to %llu",
         (unsigned long long)before.memory.bytes, (unsigned long long)after.memory.bytes);
  expect(after.pinned.bytes <= before.pinned.bytes + before.pinned.bytes / 4, "pinned memory in use grew: %llu to %llu",
         (unsigned long long)before.pinned.bytes, (unsigned long long)after.pinned.bytes);
  expect(after.memory.bytes <= 64u << 20 && after.pinned.bytes <= 128u << 20, "more is in use than the settings allow");
  return device::finish();
}

int tests::gpu_faults() {
  static const char* const kFunctions[] = {
      "cuPointerGetAttributes",
      "cuMemcpyAsync",
      "cuLaunchKernel",
      "cuStreamWriteValue32",
      "cuEventRecord",
      "cuEventQuery",
      "cuStreamQuery",
      "cuMemAlloc",
      "cuMemHostAlloc",
      "cuCtxPushCurrent",
      "cuCtxPopCurrent",
      "cuStreamCreate",
      "cuModuleLoadData",
      "cuModuleGetFunction",
      "cuDevicePrimaryCtxRetain",
      "cuStreamIsCapturing",
      "cuEventCreate",
      "cuMemHostRegister",
      "cuMemFree",
      "cuMemFreeHost",
  };
  device::start();
  Emulator emulator;
  if (!emulator.open()) return skip();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int victim = (int)check::number("--rank", check::size - 1);
  const size_t count = 100000;
  alarm(240);  // a hang ends here, by SIGALRM
  for (const char* function : kFunctions) {
    for (const int nth : {1, 2, 5}) {
      // A new communicator for each: what a failure closed stays closed. Made before anything fails.
      MPI_Comm comm;
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
      Memory in(Kind::device, count), out(Kind::device, count);
      in.put(operand(count, check::rank));
      const std::string what = std::string(function) + ":" + std::to_string(nth) + ":2";
      if (check::rank == victim) emulator.fail(what.c_str());
      const int first = MPI_Allreduce(in.at, out.at, (int)count, MPI_FLOAT, MPI_SUM, comm);
      if (check::rank == victim) emulator.fail("");
      expect(first != MPI_SUCCESS || is_sum(out.get()), "%s fails: no error, and a wrong result", what.c_str());
      const int second = MPI_Allreduce(in.at, out.at, (int)count, MPI_FLOAT, MPI_SUM, comm);
      expect(second != MPI_SUCCESS || is_sum(out.get()), "after %s failed: no error, and a wrong result", what.c_str());
      expect(second == MPI_SUCCESS, "after %s failed the next call fails", what.c_str());
      MPI_Comm_free(&comm);
    }
  }
  return device::finish();
}
