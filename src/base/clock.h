// Time for measuring and for deadlines.
//
// ticks() is the cheapest steady clock there is (about 8 ns on x86, where it reads the time stamp counter); seconds()
// turns a difference of ticks into seconds, calibrated against the system's steady clock since the process started.
#pragma once
#include <cstdint>
#include <ctime>

namespace gpurdma::clock {

inline uint64_t nanoseconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

inline uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return nanoseconds();
#endif
}

double seconds(uint64_t ticks);

// Seconds from one tick to another; 0 where `now` was taken before `then`.
inline double since(uint64_t then, uint64_t now) { return now > then ? seconds(now - then) : 0; }

}  // namespace gpurdma::clock
