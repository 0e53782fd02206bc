#include "emu/leaks.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "emu/counts.h"
#include "emu/emu.h"
#include "emu/event.h"
#include "emu/memory.h"
#include "emu/module.h"
#include "emu/pool.h"
#include "emu/stream.h"
#include "emu/virtual.h"

namespace emu {

namespace {

// Prints each; returns how many.
int leaks() {
  int found = 0;
  for (const auto& [address, memory] : all_memory()) {
    fprintf(stderr, "emulated CUDA driver: left at exit: %s\n", describe(address).c_str());
    ++found;
  }
  const struct {
    const char* what;
    size_t count;
  } rows[] = {{"streams", living_streams().size()},
              {"events", living_events()},
              {"modules", living_modules()},
              {"memory pools", living_pools()},
              {"reserved address ranges", living_reservations()},
              {"memory handles that are mapped nowhere", living_chunks()}};
  for (const auto& row : rows) {
    if (row.count == 0) continue;
    fprintf(stderr, "emulated CUDA driver: left at exit: %zu %s\n", row.count, row.what);
    found += int(row.count);
  }
  return found;
}

void at_exit() {
  Driver& state = driver();
  if (state.pid != getpid()) return;
  bool leaky = false;
  {
    Lock lock(state.mutex);
    if (state.settings.counts) print_counts();
    leaky = state.settings.leaks && leaks() != 0;
    state.ended = true;
  }
  if (!leaky) return;
  fprintf(stderr, "emulated CUDA driver: leaks, pid %d\n", int(getpid()));
  fflush(nullptr);
  _exit(98);
}

}  // namespace

void report_at_exit() { atexit(at_exit); }

}  // namespace emu

extern "C" int emu_leaks() {
  emu::Lock lock(emu::driver().mutex);
  return emu::leaks();
}
