// Matching, lists and waiting. Failures are in failure_test.cc.
#include "engine/engine.h"

#include "test/unit/engine/rig.h"

namespace gpurdma {
namespace {

Plan receive_one() {
  return plan_of(0, 2, [](Plan& p) { p.recv(out(0, 1), 1); });
}

TEST(Engine, AnEmptyPlanEndsAtOnce) {
  Rig rig(0, 1);
  const Plan plan = plan_of(0, 1, [](Plan&) {});
  rig.begin(plan);
  EXPECT_EQ(rig.engine.active(), 0u);
  EXPECT_EQ(rig.ended(), Status::ok);
}

TEST(Engine, KeepsMessagesOfOperationsThatHaveNotBegun) {
  Rig rig(0, 2);
  rig.number = Number::call(CallClass::nonblocking, 0);
  rig.data(1, 0, {42});
  EXPECT_GT(rig.engine.early_bytes(), 0u);
  const Plan plan = receive_one();
  rig.begin(plan);
  EXPECT_EQ(rig.output[0], 42);
  EXPECT_EQ(rig.ended(), Status::ok);
  EXPECT_EQ(rig.engine.early_bytes(), 0u);
}

TEST(Engine, ClassesAndPersistentStartsAreMatchedApart) {
  Rig rig(0, 2);
  const Plan plan = receive_one();
  const uint32_t first = rig.comm->new_persistent(), second = rig.comm->new_persistent();
  const Number numbers[] = {rig.comm->next_call(CallClass::blocking), rig.comm->next_call(CallClass::nonblocking),
                            rig.comm->next_start(second), rig.comm->next_start(first)};
  Ints results(4);
  for (int i = 0; i < 4; ++i) {
    gpurdma::Run* run;
    ASSERT_EQ(rig.engine.begin(plan, *rig.comm, numbers[i], {nullptr, &results[size_t(i)], 4, Rig::sum},
                               {&results, 0, 4}, &run),
              Status::ok);
  }
  for (const int i : {2, 0, 3, 1}) {
    rig.number = numbers[i];
    rig.data(1, 0, {i + 10});
  }
  EXPECT_EQ(results, (Ints{10, 11, 12, 13}));
}

TEST(Engine, DropsLateCredit) {
  Rig rig(0, 2);
  const Plan plan = plan_of(0, 2, [](Plan& p) { p.send(1, in(0, 1)); });
  rig.begin(plan);
  EXPECT_EQ(rig.ended(), Status::ok);
  rig.credit(1, 1);
  EXPECT_EQ(rig.engine.early_bytes(), 0u);
}

TEST(Engine, DropsWhatIsForACommunicatorThatIsGone) {
  Rig rig(0, 2);
  const uint32_t handle = rig.comm->handle;
  rig.number = Number::call(CallClass::nonblocking, 0);
  rig.data(1, 0, {1});
  rig.engine.free_communicator(rig.comm);
  EXPECT_EQ(rig.engine.early_bytes(), 0u);
  rig.comm = rig.engine.new_communicator(0, 2, "next", {});
  EXPECT_NE(rig.comm->handle, handle);
  Ints values(kBulk);
  for (const uint32_t stale : {handle, handle + 1, UINT32_MAX}) {
    Header header = rig.header(1, 0, Header::Kind::data);
    header.comm = stale;
    rig.transport.inbox->arrived(header, {nullptr, kBulk * 4, values.data()});
  }
  EXPECT_EQ(rig.transport.refused.size(), 3u);
  EXPECT_EQ(rig.engine.early_bytes(), 0u);
  Header nobody = rig.header(2, 0, Header::Kind::data);  // no such rank
  rig.transport.inbox->arrived(nobody, {&values[0], 4, nullptr});
  EXPECT_EQ(rig.engine.early_bytes(), 0u);
}

TEST(Engine, HandsOverCompletionsOldestFirst) {
  Rig rig(0, 2);
  const Plan plan = receive_one();
  int cookies[3];
  Number numbers[3];
  for (int i = 0; i < 3; ++i) {
    rig.begin(plan, &cookies[i]);
    numbers[i] = rig.number;
  }
  EXPECT_EQ(rig.engine.active(), 3u);
  for (const int i : {2, 0, 1}) {
    rig.number = numbers[i];
    rig.data(1, 0, {1});
  }
  EXPECT_EQ(rig.engine.active(), 0u);
  EXPECT_EQ(rig.engine.unclaimed(), 3u);
  Engine::Ended ended[4];
  ASSERT_EQ(rig.engine.finished(ended, 2), 2);
  EXPECT_EQ(ended[0].cookie, &cookies[2]);
  EXPECT_EQ(ended[1].cookie, &cookies[0]);
  ASSERT_EQ(rig.engine.finished(ended, 4), 1);
  EXPECT_EQ(ended[0].cookie, &cookies[1]);
  EXPECT_EQ(rig.released, 3);
}

TEST(Engine, WaitsAndLeavesOtherOperationsToTheirOwners) {
  Rig rig(0, 2);
  const Plan plan = receive_one();
  rig.begin(plan);
  const Number other = rig.number;
  const Number number = rig.comm->next_call(CallClass::blocking);
  gpurdma::Run* run;
  ASSERT_EQ(rig.engine.begin(plan, *rig.comm, number, {nullptr, rig.output.data(), 4, Rig::sum}, {}, &run), Status::ok);
  int polls = 0;
  rig.transport.on_progress = [&] {
    if (++polls == 100) rig.number = other, rig.data(1, 0, {1});
    if (polls == 200) rig.number = number, rig.data(1, 0, {2});
    return 0;
  };
  EXPECT_EQ(rig.engine.wait(*run, nullptr), Status::ok);
  EXPECT_EQ(polls, 200);
  EXPECT_EQ(rig.output[0], 2);
  EXPECT_EQ(rig.engine.unclaimed(), 1u);
  EXPECT_EQ(rig.ended(), Status::ok);
}

// An engine that waits for one operation; counts what it asks for meanwhile.
struct Waiting {
  ScriptedTransport transport;
  Counters counters;
  std::unique_ptr<Engine> engine;
  Communicator* comm;
  int polls = 0, host_polls = 0;
  int32_t result = 0;

  Waiting() {
    Engine::Host host;
    host.context = this;
    host.progress = [](void* context) {
      Waiting& w = *static_cast<Waiting*>(context);
      EXPECT_TRUE(w.engine->try_lock());
      w.engine->unlock();
      ++w.host_polls;
    };
    engine = std::make_unique<Engine>(transport, counters, Engine::Limits{}, host);
    comm = engine->new_communicator(0, 2, "", {});
    comm->link(1).state = Link::State::up;
  }
  // Until `enough`, which is asked at each poll.
  template <class F>
  void wait(F enough) {
    engine->lock();
    const Plan plan = receive_one();
    const Number number = comm->next_call(CallClass::blocking);
    gpurdma::Run* run;
    ASSERT_EQ(engine->begin(plan, *comm, number, {nullptr, &result, 4, Rig::sum}, {}, &run), Status::ok);
    transport.on_progress = [&] {
      ++polls;
      const int32_t value = 5;
      const Header header{number.bits(), comm->handle, 1, 0, Header::Kind::data};
      if (enough()) transport.inbox->arrived(header, {&value, 4, nullptr});
      return 0;
    };
    EXPECT_EQ(engine->wait(*run, nullptr), Status::ok);
    EXPECT_EQ(result, 5);
    engine->unlock();
  }
};

TEST(Engine, WaitProgressesTheHostWithoutTheLock) {
  Waiting waiting;
  waiting.wait([&] { return waiting.host_polls == 3; });
}

// The peer may be late because it waits for another message of ours, which the host would bring on.
TEST(Engine, WaitProgressesTheHostAtEachNap) {
  Waiting waiting;
  waiting.comm->oversubscribed = true;  // it yields soon
  int host_polls_awake = 0;
  waiting.wait([&] {
    if (waiting.polls == 2100) host_polls_awake = waiting.host_polls;  // it naps by now
    return waiting.polls == 2200;
  });
  EXPECT_GE(waiting.host_polls - host_polls_awake, 99);
}

TEST(Engine, CountsCallsUnderTheSlowestPath) {
  Rig rig(0, 3);
  rig.comm->link(1).path = Path::shared_memory;
  const Plan plan = plan_of(0, 3, [](Plan& p) {
    p.send(1, in(0, 3));
    p.send(2, in(0, 2));
  });
  rig.begin(plan);
  const auto& row = rig.counters.rows[0];
  EXPECT_EQ(row[int(Path::rdma)].calls, 1u);
  EXPECT_EQ(row[int(Path::rdma)].bytes, 4u);  // as the ticket says
  EXPECT_EQ(row[int(Path::shared_memory)].calls, 0u);
  EXPECT_EQ(rig.counters.sent_bytes[int(Path::shared_memory)], 12u);
  EXPECT_EQ(rig.counters.sent_bytes[int(Path::rdma)], 8u);
}

}  // namespace
}  // namespace gpurdma
