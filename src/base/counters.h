// Counters: which algorithm and which path every call and every byte took.
//
// One set per process, written under the engine's lock and read at any time (a reader may see a call's bytes before
// its time).
#pragma once
#include <cstddef>
#include <cstdint>

namespace gpurdma {

// What concerns operands in device memory.
enum class GpuCount : int {
  mirror_calls,    // that ran on host memory
  mirror_bytes,    // of their operands
  resident_calls,  // that ran on a GPU
  resident_bytes,
  staged_messages,  // sent from or received to a GPU through host memory
  staged_bytes,
  direct_messages,  // sent from or received to device memory by UCX
  direct_bytes,
  count
};

struct Counters {
  static constexpr int kAlgorithms = 16;  // at least as many as the catalogue has rows
  static constexpr int kPaths = 4;        // transport/transport.h, Path

  struct Row {
    uint64_t calls;
    uint64_t bytes;  // of the operands, not of the wire
    uint64_t ticks;  // from start to end, waiting for peers included
  };
  void add(GpuCount events, GpuCount bytes_of_them, uint64_t bytes) {
    ++gpu[int(events)];
    gpu[int(bytes_of_them)] += bytes;
  }

  Row rows[kAlgorithms][kPaths] = {};  // a call counts under the slowest path it used
  uint64_t sent_bytes[kPaths] = {};    // payload handed to the transport
  uint64_t gpu[int(GpuCount::count)] = {};
};

}  // namespace gpurdma
