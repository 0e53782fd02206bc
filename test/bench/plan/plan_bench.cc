// Cost of building plans and of finding them again.
#include <benchmark/benchmark.h>

#include "coll/plan_cache.h"

namespace gpurdma {
namespace {

using benchmark::Counter;
using benchmark::State;

constexpr size_t kPiece = 8192;  // elements

// range(0): ranks; range(1): pieces in a block; range(2): in place.
Plan build(const Algorithm& algorithm, const State& state) {
  const int ranks = static_cast<int>(state.range(0));
  const size_t count = state.range(1) * kPiece * ranks;
  Plan plan(ranks / 2, ranks);
  algorithm.build(plan, Group(ranks / 2, ranks), {count, state.range(2) != 0, 0}, {kPiece, 8});
  plan.seal();
  return plan;
}

void report(State& state, size_t operations) {
  state.counters["operations"] = static_cast<double>(operations);
  state.counters["per_operation"] =
      Counter(static_cast<double>(operations), Counter::kIsIterationInvariantRate | Counter::kInvert);
}

void plan_build_ring(State& state) {
  const Algorithm& ring = *find_algorithm(Collective::allreduce, "ring");
  size_t operations = 0;
  for (auto _ : state) operations = build(ring, state).ops().size();
  report(state, operations);
}
BENCHMARK(plan_build_ring)->ArgsProduct({{8, 64, 256, 1024}, {1, 4, 16}, {0, 1}})->Unit(benchmark::kMicrosecond);

void plan_build_doubling(State& state) {
  const Algorithm& doubling = *find_algorithm(Collective::allreduce, "doubling");
  size_t operations = 0;
  for (auto _ : state) operations = build(doubling, state).ops().size();
  report(state, operations);
}
BENCHMARK(plan_build_doubling)->ArgsProduct({{8, 1024}, {1, 16}, {0}})->Unit(benchmark::kMicrosecond);

PlanKey key(size_t count) {
  return {find_algorithm(Collective::allreduce, "doubling"), 3, 8, {count, false, 0}, {kPiece, 8}};
}

void plan_cache_same(State& state) {
  PlanCache cache;
  const PlanKey wanted = key(100);
  for (auto _ : state) cache.release(cache.acquire(wanted));
}
BENCHMARK(plan_cache_same);

void plan_cache_other(State& state) {
  PlanCache cache;
  std::vector<PlanKey> keys;
  for (size_t i = 0; i < 64; ++i) keys.push_back(key(i * 1000 + 1));
  size_t i = 0;
  for (auto _ : state) cache.release(cache.acquire(keys[i++ % keys.size()]));
}
BENCHMARK(plan_cache_other);

}  // namespace
}  // namespace gpurdma
