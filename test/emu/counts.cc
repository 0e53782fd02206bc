#include "emu/counts.h"

#include <unistd.h>

#include <cstdio>

#include "emu/emu.h"

namespace emu {

namespace {

emu_counts counts = {};

void add(emu_count& count, uint64_t bytes) {
  ++count.copies;
  count.bytes += bytes;
}

bool on_device(const Memory* memory) { return memory != nullptr && !memory->on_host(); }

emu_counts counts_now() {
  emu_counts now = counts;
  for (const auto& [address, memory] : all_memory()) add(memory->on_host() ? now.pinned : now.memory, memory->bytes);
  return now;
}

}  // namespace

void count_copy(const Memory* to, const Memory* from, uint64_t bytes) {
  if (on_device(to) && on_device(from))
    add(to->device == from->device ? counts.within : counts.between, bytes);
  else if (on_device(to))
    add(from == nullptr ? counts.up_pageable : counts.up_pinned, bytes);
  else if (on_device(from))
    add(to == nullptr ? counts.down_pageable : counts.down_pinned, bytes);
  else
    add(counts.host, bytes);
}

void count_launch(uint64_t bytes) { add(counts.launches, bytes); }
void count_wait() { ++counts.waits; }

void print_counts() {
  const emu_counts now = counts_now();
  const struct {
    const char* name;
    emu_count count;
  } rows[] = {{"pageable to device", now.up_pageable},
              {"pinned to device", now.up_pinned},
              {"device to pageable", now.down_pageable},
              {"device to pinned", now.down_pinned},
              {"within a device", now.within},
              {"between devices", now.between},
              {"within the host", now.host},
              {"kernel launches", now.launches}};
  char text[1024];
  int length = snprintf(text, sizeof text, "emulated CUDA driver: pid %d, rank %s\n", int(getpid()),
                        environment("OMPI_COMM_WORLD_RANK", "-").c_str());
  for (const auto& row : rows)
    length += snprintf(text + length, sizeof text - size_t(length), "  %-20s %10llu  %14llu bytes\n", row.name,
                       (unsigned long long)row.count.copies, (unsigned long long)row.count.bytes);
  snprintf(text + length, sizeof text - size_t(length), "  %-20s %10llu\n", "waits", (unsigned long long)now.waits);
  fputs(text, stderr);
}

}  // namespace emu

extern "C" void emu_get_counts(emu_counts* counts) {
  emu::Lock lock(emu::driver().mutex);
  *counts = emu::counts_now();
}

extern "C" void emu_reset_counts() {
  emu::Lock lock(emu::driver().mutex);
  emu::counts = {};
}
