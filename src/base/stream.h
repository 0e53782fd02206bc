// Copies past the caches: for results that are larger than them, and that nobody reads soon.
//
// A plain store first reads the line that it writes to; these do not, which is a third of the memory traffic of an
// allreduce. Where the CPU or the compiler has no such stores it is memcpy.
#pragma once
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace gpurdma {

// As memcpy. stream_fence() before anyone else is told of it.
inline void stream_copy(void* to, const void* from, size_t bytes) {
#ifdef __SSE2__
  char* d = static_cast<char*>(to);
  const char* s = static_cast<const char*>(from);
  const size_t to_line = -reinterpret_cast<uintptr_t>(d) & 63;
  const size_t head = to_line < bytes ? to_line : bytes;
  std::memcpy(d, s, head);
  size_t at = head;
  for (; at + 64 <= bytes; at += 64) {
    const __m128i* line = reinterpret_cast<const __m128i*>(s + at);
    const __m128i a = _mm_loadu_si128(line), b = _mm_loadu_si128(line + 1), c = _mm_loadu_si128(line + 2),
                  e = _mm_loadu_si128(line + 3);
    __m128i* into = reinterpret_cast<__m128i*>(d + at);
    _mm_stream_si128(into, a);
    _mm_stream_si128(into + 1, b);
    _mm_stream_si128(into + 2, c);
    _mm_stream_si128(into + 3, e);
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
