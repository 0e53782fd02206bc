#include "test/sim/element.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "test/sim/random.h"

namespace gpurdma::sim {
namespace {

uint64_t contribution(uint64_t salt, int rank, size_t i) { return mix(salt ^ mix(uint64_t(rank) << 40 ^ i)); }

// Every type gives: element(salt, rank, i), operator+ (left, right), and whether a sum over all ranks is right.

template <class T>
struct Integer {  // sums that wrap
  T value;
  static constexpr bool kAnyOrder = true, kExact = true;
  static Integer element(uint64_t salt, int rank, size_t i) { return {T(contribution(salt, rank, i))}; }
  Integer operator+(const Integer& right) const { return {T(value + right.value)}; }
  bool right(uint64_t salt, int ranks, size_t i) const {
    T sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum = T(sum + T(contribution(salt, rank, i)));
    return value == sum;
  }
};

struct Set {  // who took part, and how many: the order does not matter
  uint64_t sum;
  uint32_t members, folded;
  static constexpr bool kAnyOrder = true, kExact = true;
  static Set element(uint64_t salt, int rank, size_t i) {
    const uint64_t c = contribution(salt, rank, i);
    return {c, 1, uint32_t(c >> 32)};
  }
  Set operator+(const Set& right) const { return {sum + right.sum, members + right.members, folded ^ right.folded}; }
  bool right(uint64_t salt, int ranks, size_t i) const {
    Set all{};
    for (int rank = 0; rank < ranks; ++rank) all = all + element(salt, rank, i);
    return sum == all.sum && members == uint32_t(ranks) && folded == all.folded;
  }
};

struct Interval {  // ranks [first, last]; joins only with its neighbours, the lower ranks on the left
  uint32_t first, last;
  uint64_t hash;  // a polynomial in kBase with the contributions as coefficients
  static constexpr bool kAnyOrder = false, kExact = true;
  static constexpr uint64_t kBase = 0x9E3779B97F4A7C15u;
  static constexpr uint32_t kBroken = UINT32_MAX;
  static uint64_t power(uint32_t exponent) {
    uint64_t result = 1;
    for (uint64_t base = kBase; exponent; exponent >>= 1, base *= base)
      if (exponent & 1) result *= base;
    return result;
  }
  static Interval element(uint64_t salt, int rank, size_t i) {
    return {uint32_t(rank), uint32_t(rank), contribution(salt, rank, i)};
  }
  Interval operator+(const Interval& right) const {
    if (last == kBroken || last + 1 != right.first) return {kBroken, kBroken, 0};
    return {first, right.last, hash * power(right.last - right.first + 1) + right.hash};
  }
  bool right(uint64_t salt, int ranks, size_t i) const {
    uint64_t all = 0;
    for (int rank = 0; rank < ranks; ++rank) all = all * kBase + contribution(salt, rank, i);
    return first == 0 && last == uint32_t(ranks) - 1 && hash == all;
  }
};

struct Float {  // the bits depend on the order, so equal bits everywhere mean the same order everywhere
  float value;
  static constexpr bool kAnyOrder = true, kExact = false;
  static double number(uint64_t salt, int rank, size_t i) {
    const uint64_t c = contribution(salt, rank, i);
    return float(std::ldexp(double(c >> 40) - 8388608.0, int(c % 21) - 33));
  }
  static Float element(uint64_t salt, int rank, size_t i) { return {float(number(salt, rank, i))}; }
  Float operator+(const Float& right) const { return {value + right.value}; }
  bool right(uint64_t salt, int ranks, size_t i) const {
    double sum = 0, magnitude = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      sum += number(salt, rank, i);
      magnitude += std::fabs(number(salt, rank, i));
    }
    return std::fabs(double(value) - sum) <= magnitude * ranks * std::ldexp(1.0, -24);
  }
};

template <class T>
void fill(void* at, uint64_t salt, int rank, size_t count) {
  for (size_t i = 0; i < count; ++i) static_cast<T*>(at)[i] = T::element(salt, rank, i);
}

// Holds the engine to the contract of Reduce, too.
template <class T>
void reduce(void* dst, const void* left, const void* right, size_t count) {
  const char* out = static_cast<char*>(dst);
  for (const void* operand : {left, right}) {
    const char* in = static_cast<const char*>(operand);
    const bool apart = in + count * sizeof(T) <= out || out + count * sizeof(T) <= in;
    const bool aligned = reinterpret_cast<uintptr_t>(in) % alignof(T) == 0;
    if (aligned && (apart || in == out)) continue;
    std::fprintf(stderr, "reduce(%p, %p, %p, %zu elements of %zu bytes): operands overlap or are not aligned\n", dst,
                 left, right, count, sizeof(T));
    std::abort();
  }
  for (size_t i = 0; i < count; ++i)
    static_cast<T*>(dst)[i] = static_cast<const T*>(left)[i] + static_cast<const T*>(right)[i];
}

template <class T>
bool right(const void* at, uint64_t salt, int ranks, size_t count, size_t* wrong) {
  for (size_t i = 0; i < count; ++i) {
    if (static_cast<const T*>(at)[i].right(salt, ranks, i)) continue;
    *wrong = i;
    return false;
  }
  return true;
}

template <class T>
constexpr Element element(const char* name) {
  return {name, sizeof(T), T::kAnyOrder, T::kExact, fill<T>, reduce<T>, right<T>};
}

constexpr std::array<Element, 6> kElements = {
    element<Integer<uint8_t>>("uint8"),   element<Integer<uint32_t>>("uint32"),
    element<Integer<uint64_t>>("uint64"), element<Set>("set"),
    element<Interval>("interval"),        element<Float>("float"),
};

}  // namespace

Span<const Element> elements() { return {kElements.data(), kElements.size()}; }

}  // namespace gpurdma::sim
