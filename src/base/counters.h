// Counters: which algorithm and which path every call and every byte took.
//
// One table per process, written under the engine's lock and read at any time (a reader may see a call's bytes before
// its time).
#pragma once
#include <cstddef>
#include <cstdint>

namespace gpurdma {

struct Counters {
  static constexpr int kAlgorithms = 16;  // at least as many as the catalogue has rows
  static constexpr int kPaths = 4;        // transport/transport.h, Path

  struct Row {
    uint64_t calls;
    uint64_t bytes;  // of the operands, not of the wire
    uint64_t ticks;  // from start to end, waiting for peers included
  };
  Row rows[kAlgorithms][kPaths] = {};  // a call counts under the slowest path it used
  uint64_t sent_bytes[kPaths] = {};    // payload handed to the transport
  // Operands in device memory.
  uint64_t mirror_calls = 0, mirror_bytes = 0;      // ran on host memory, and the bytes of their operands
  uint64_t resident_calls = 0, resident_bytes = 0;  // ran on a GPU
  uint64_t staged_messages = 0, staged_bytes = 0;   // sent from and received to a GPU through host memory
};

}  // namespace gpurdma
