// Copies that know where the other end is: memory that nobody reads soon, and memory in the cache of another core.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace gpurdma {

constexpr size_t kCacheLine = 64;

// Asks for the lines of memory that is written next, wherever they are now: a store asks for its own line only when it
// is its turn. What the other core has read takes as long to get back as what it has written.
inline void expect_writing(void* at, size_t bytes) {
#ifdef __x86_64__
  char* const line = static_cast<char*>(at);
  for (size_t i = 0; i < bytes; i += kCacheLine) asm volatile("prefetchw %0" : : "m"(line[i]));
#else
  for (size_t i = 0; i < bytes; i += kCacheLine) __builtin_prefetch(static_cast<char*>(at) + i, 1);
#endif
}

// Hints that another core reads these lines next: the CPU moves them to the cache that both share, which is nearer to
// the other than ours. Nothing on CPUs that do not know it.
inline void hand_over(const void* at, size_t bytes) {
#ifdef __x86_64__
  const char* const line = static_cast<const char*>(at);
  for (size_t i = 0; i < bytes; i += kCacheLine) asm volatile("cldemote %0" : : "m"(line[i]));
#else
  (void)at, (void)bytes;
#endif
}

// Copies into memory that another core reads.
inline void copy_for_peer(void* to, const void* from, size_t bytes) {
  constexpr size_t kPart = 512, kAhead = 2048;
  char* const d = static_cast<char*>(to);
  const char* const s = static_cast<const char*>(from);
  if (bytes >= kPart) expect_writing(d, std::min(kAhead, bytes));  // less than that is quicker without
  for (size_t at = 0; at < bytes; at += kPart) {
    if (at + kAhead < bytes) expect_writing(d + at + kAhead, std::min(kPart, bytes - at - kAhead));
    std::memcpy(d + at, s + at, std::min(kPart, bytes - at));
  }
}

// Copies past the caches: for results that are larger than them. A plain store first reads the line that it writes to;
// these do not, which is a third of the memory traffic of an allreduce. To be followed by stream_fence() before anyone
// else is told. Where the CPU has no such stores it is memcpy.
inline void stream_copy(void* to, const void* from, size_t bytes) {
#ifdef __SSE2__
  char* const d = static_cast<char*>(to);
  const char* const s = static_cast<const char*>(from);
  size_t at = std::min(bytes, -reinterpret_cast<uintptr_t>(d) % kCacheLine);
  std::memcpy(d, s, at);
  for (; at + kCacheLine <= bytes; at += kCacheLine) {
    const auto* const line = reinterpret_cast<const __m128i*>(s + at);
    auto* const into = reinterpret_cast<__m128i*>(d + at);
    const __m128i quarters[] = {_mm_loadu_si128(line), _mm_loadu_si128(line + 1), _mm_loadu_si128(line + 2),
                                _mm_loadu_si128(line + 3)};
    for (int i = 0; i < 4; ++i) _mm_stream_si128(into + i, quarters[i]);
  }
  std::memcpy(d + at, s + at, bytes - at);
#else
  std::memcpy(to, from, bytes);
#endif
}

inline void stream_fence() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

}  // namespace gpurdma
