#include "base/log.h"

#include <cstdio>

namespace gpurdma::log {
namespace {

void to_stderr(Level, const char* line) { std::fprintf(stderr, "gpurdma: %s\n", line); }

Sink sink = to_stderr;

}  // namespace

Level threshold = Level::warn;

void configure(Level level, Sink to) {
  threshold = level;
  sink = to ? to : to_stderr;
}

void write(Level level, const char* format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  sink(level, line);
}

}  // namespace gpurdma::log
