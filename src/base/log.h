// Log lines. A line says what, where and with what numbers, in words a site's support desk can act on.
//
// Lines go to one sink, which the owner of the process installs (the Open MPI component prints them with opal_output,
// tests capture them). A line above the level costs one load and one compare, and its arguments are not evaluated.
// Any thread may log; the sink must cope with that.
#pragma once
#include <cstdarg>

namespace gpurdma::log {

enum class Level : int { error = 0, warn = 1, info = 2, debug = 3, trace = 4 };

using Sink = void (*)(Level, const char* line);

// Lines up to and including `level` reach `sink`; nullptr means stderr.
void configure(Level level, Sink sink);

extern Level threshold;
inline bool enabled(Level level) { return level <= threshold; }

[[gnu::format(printf, 2, 3)]] void write(Level level, const char* format, ...);

}  // namespace gpurdma::log

#define GPURDMA_LOG(level, ...)                                     \
  do {                                                              \
    if (gpurdma::log::enabled(gpurdma::log::Level::level))          \
      gpurdma::log::write(gpurdma::log::Level::level, __VA_ARGS__); \
  } while (0)
