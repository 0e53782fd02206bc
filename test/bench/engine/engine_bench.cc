// What the engine itself costs: starting a plan that is cached, and an operation from its start to its completion, over
// a transport that takes no time.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <vector>

#include "coll/catalogue.h"
#include "engine/engine.h"

namespace gpurdma {
namespace {

// Swallows everything.
class NoTransport final : public Transport {
 public:
  uint64_t sent = 0;
  Inbox* inbox = nullptr;

  void attach(Inbox* to) override { inbox = to; }
  Status address(Span<const char>*) override { return Status::ok; }
  Status connect(Span<const char>, PeerId*) override { return Status::ok; }
  Path path(PeerId) const override { return Path::shared_memory; }
  Sent send(PeerId, const Header&, const void*, size_t, Token) override {
    ++sent;
    return Sent::done;
  }
  void* reserve(PeerId, size_t) override { return nullptr; }
  void commit(PeerId, const Header&, size_t) override {}
  Sent fetch(void*, void*, size_t, Token) override { return Sent::done; }
  void refuse(void*) override {}
  int progress() override { return 0; }
  void check_peers() override {}
  void abandon(PeerId) override {}
};

void nothing(void*, const void*, const void*, size_t) {}

struct Bench {
  NoTransport transport;
  Counters counters;
  Engine engine{transport, counters, {}, {}};
  Communicator* comm;
  Plan plan;
  std::vector<char> buffer;
  Number number;

  Bench(const char* algorithm, int ranks, size_t count)
      : comm(engine.new_communicator(0, ranks, "bench", {})), plan(0, ranks), buffer(count * 4) {
    for (int r = 1; r < ranks; ++r) comm->link(r).state = Link::State::up;
    const Call call{count, true, 0};
    find_algorithm(Collective::allreduce, algorithm)->build(plan, Group(0, ranks), call, Tuning{8192, 8});
    plan.seal();
  }

  void begin() {
    number = comm->next_call(CallClass::nonblocking);
    Run* run;
    if (engine.begin(plan, *comm, number, {nullptr, buffer.data(), 4, nothing}, {this, 0, 0}, &run) != Status::ok)
      std::abort();
  }
  void arrived(int from, uint32_t position, size_t bytes) {
    const Header header{number.bits(), comm->handle, uint32_t(from), position, Header::Kind::data};
    engine.arrived(header, {buffer.data(), bytes, nullptr});
  }
  // All messages of the plan, peer by peer.
  void all_arrive() {
    for (const Plan::Peer& peer : plan.peers())
      for (uint32_t i = 0; i < peer.recvs.size(); ++i) arrived(peer.rank, i, plan.ops()[peer.recvs[i]].dst.n * 4);
  }
  bool ended() {
    Engine::Ended ended;
    return engine.finished(&ended, 1) == 1;
  }
};

void report(benchmark::State& state, const Bench& bench, int plans) {
  using benchmark::Counter;
  const double operations = double(bench.plan.ops().size());
  state.counters["operations"] = operations;
  state.counters["per_operation"] = Counter(plans * operations, Counter::kIsIterationInvariantRate | Counter::kInvert);
}

// Starting plans, and what follows from that at once. range(0): ranks. Blocks of one element: nothing waits for credit.
void plan_start(benchmark::State& state, const char* algorithm) {
  constexpr int kPlans = 64;  // in flight, so that stopping the clock, some 600 ns, counts little
  Bench bench(algorithm, int(state.range(0)), size_t(state.range(0)));
  for (auto _ : state) {
    for (int i = 0; i < kPlans; ++i) bench.begin();
    state.PauseTiming();
    const uint64_t last = bench.number.index();
    for (int i = kPlans; i-- > 0;) {
      bench.number = Number::call(CallClass::nonblocking, last - uint64_t(i));
      bench.all_arrive();
      if (!bench.ended()) state.SkipWithError("an operation did not end");
    }
    state.ResumeTiming();
  }
  report(state, bench, kPlans);
}
BENCHMARK_CAPTURE(plan_start, ring, "ring")->RangeMultiplier(4)->Range(2, 1024);
BENCHMARK_CAPTURE(plan_start, doubling, "doubling")->RangeMultiplier(4)->Range(2, 1024);

// A whole operation: from its start over the arrival of every message to its completion.
void whole_operation(benchmark::State& state, const char* algorithm) {
  Bench bench(algorithm, int(state.range(0)), size_t(state.range(0)));
  for (auto _ : state) {
    bench.begin();
    bench.all_arrive();
    if (!bench.ended()) state.SkipWithError("an operation did not end");
  }
  report(state, bench, 1);
}
BENCHMARK_CAPTURE(whole_operation, ring, "ring")->RangeMultiplier(4)->Range(2, 1024);
BENCHMARK_CAPTURE(whole_operation, doubling, "doubling")->RangeMultiplier(4)->Range(2, 1024);

// One message: from its arrival in an operation that waits for it to the end of that operation.
void last_message(benchmark::State& state) {
  constexpr int kPlans = 16;
  Bench bench("doubling", 2, 1);
  for (auto _ : state) {
    state.PauseTiming();
    for (int i = 0; i < kPlans; ++i) bench.begin();
    const uint64_t last = bench.number.index();
    state.ResumeTiming();
    for (int i = kPlans; i-- > 0;) {
      bench.number = Number::call(CallClass::nonblocking, last - uint64_t(i));
      bench.all_arrive();
      if (!bench.ended()) state.SkipWithError("an operation did not end");
    }
  }
  report(state, bench, kPlans);
}
BENCHMARK(last_message);

}  // namespace
}  // namespace gpurdma
