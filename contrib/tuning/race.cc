#include "contrib/tuning/race.h"

#include <algorithm>

namespace gpurdma::tuning {
namespace {

struct Runner {
  std::vector<double> blocks;  // us
  double first_us = 0;         // an estimate, from the first blocks
  bool out = false;

  double quantile(double part) const {
    std::vector<double> sorted = blocks;
    std::sort(sorted.begin(), sorted.end());
    return sorted[size_t(part * double(sorted.size() - 1) + 0.5)];
  }
  double us() const { return blocks.empty() ? first_us : quantile(0.5); }
  Timing timing() const {
    if (blocks.empty()) return {first_us, 0};
    return {us(), (quantile(0.75) - quantile(0.25)) / us() / 2};
  }
};

int calls_for(double block_us, double call_us) {
  return int(std::max(1.0, std::min(20000.0, block_us / std::max(call_us, 0.01))));
}

double best_us(const std::vector<Runner>& runners) {
  double best = runners[0].us();
  for (const Runner& runner : runners) best = std::min(best, runner.us());
  return best;
}

void give_up(std::vector<Runner>& runners, double factor) {
  const double best = best_us(runners);
  for (Runner& runner : runners) runner.out = runner.out || runner.us() > factor * best;
}

}  // namespace

std::vector<Timing> race(Stopwatch& stopwatch, size_t bytes, const std::vector<Candidate>& candidates,
                         const Effort& effort) {
  constexpr double kHopeless = 3;  // times the best, by the best of a few first blocks
  constexpr int kFirstBlocks = 2;
  std::vector<Runner> runners(candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    stopwatch.check(candidates[i], bytes);
    runners[i].first_us = stopwatch.block_us(candidates[i], bytes, 1);
  }
  for (int block = 0; block < kFirstBlocks; ++block) {  // in turn: what disturbs one of them is gone by the next
    for (size_t i = 0; i < candidates.size(); ++i) {
      double& us = runners[i].first_us;
      const int calls = calls_for(effort.block_us, us);
      if (calls > 1) us = std::min(us, stopwatch.block_us(candidates[i], bytes, calls));
    }
  }
  // Only where it saves much: later rounds judge better.
  if (best_us(runners) > effort.block_us) give_up(runners, kHopeless);

  double spent_us = 0;
  for (int round = 0; round < effort.rounds; ++round) {
    if (round >= kLeastRounds && spent_us > effort.budget_us) break;
    for (size_t n = 0; n < candidates.size(); ++n) {
      const size_t i = (n + size_t(round)) % candidates.size();
      if (runners[i].out) continue;
      const int calls = calls_for(effort.block_us, runners[i].first_us);
      runners[i].blocks.push_back(stopwatch.block_us(candidates[i], bytes, calls));
      spent_us += calls * runners[i].blocks.back();
    }
    if (round + 1 >= kLeastRounds) give_up(runners, effort.give_up);
  }
  std::vector<Timing> timings;
  for (const Runner& runner : runners) timings.push_back(runner.timing());
  return timings;
}

size_t fastest(const std::vector<Timing>& timings) {
  return size_t(
      std::min_element(timings.begin(), timings.end(), [](const Timing& a, const Timing& b) { return a.us < b.us; }) -
      timings.begin());
}

}  // namespace gpurdma::tuning
