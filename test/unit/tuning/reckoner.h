// A stopwatch that reckons: times come from a formula, with noise if asked for, and all calls are counted.
#pragma once
#include <functional>
#include <map>
#include <random>
#include <string>

#include "contrib/tuning/race.h"

namespace gpurdma::tuning {

class Reckoner : public Stopwatch {
 public:
  using Formula = std::function<double(const Candidate&, size_t bytes)>;
  explicit Reckoner(Formula formula, double noise = 0) : formula_(std::move(formula)), noise_(noise) {}

  void check(const Candidate& candidate, size_t) override { ++checks[to_text(candidate)]; }
  double block_us(const Candidate& candidate, size_t bytes, int calls) override {
    ++blocks[to_text(candidate)];
    last_calls = calls;
    order += candidate.algorithm->name[0];
    return formula_(candidate, bytes) * (1 + noise_ * double(random_() % 1000) / 1000);
  }

  std::map<std::string, int> checks, blocks;  // by candidate
  int last_calls = 0;
  std::string order;  // first letters of the algorithms, block by block

 private:
  Formula formula_;
  double noise_;
  std::mt19937 random_{7};
};

inline Candidate candidate(const char* algorithm, size_t piece = 32 << 10, int depth = 8, int radix = 2) {
  return {find_algorithm(Collective::allreduce, algorithm), piece, depth, radix};
}

}  // namespace gpurdma::tuning
