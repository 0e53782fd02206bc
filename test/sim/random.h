// Random numbers that are the same everywhere for one seed (the standard's distributions are not).
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gpurdma::sim {

// A 64-bit hash; also the step of the generator. Source: Steele, Lea and Flood, SplitMix, 2014.
inline uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix(seed)) {}

  uint64_t bits() { return mix(state_ += 0x9E3779B97F4A7C15u); }
  uint64_t below(uint64_t n) { return bits() % n; }  // n > 0
  uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
  bool percent(unsigned p) { return below(100) < p; }
  template <class T>
  const T& one_of(const std::vector<T>& values) {
    return values[size_t(below(values.size()))];
  }
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[size_t(below(i))]);
  }

 private:
  uint64_t state_;
};

}  // namespace gpurdma::sim
