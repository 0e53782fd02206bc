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

TEST(Engine, WaitProgressesTheHostWithoutTheLock) {
  struct Seen {
    ScriptedTransport transport;
    Counters counters;
    std::unique_ptr<Engine> engine;
    int host_polls = 0;
  } seen;
  Engine::Host host;
  host.context = &seen;
  host.progress = [](void* context) {
    Seen& s = *static_cast<Seen*>(context);
    EXPECT_TRUE(s.engine->try_lock());
    s.engine->unlock();
    ++s.host_polls;
  };
  seen.engine = std::make_unique<Engine>(seen.transport, seen.counters, Engine::Limits{}, host);
  seen.engine->lock();
  Communicator* comm = seen.engine->new_communicator(0, 2, "", {});
  comm->link(1).state = Link::State::up;
  const Plan plan = receive_one();
  int32_t result = 0;
  const Number number = comm->next_call(CallClass::blocking);
  gpurdma::Run* run;
  ASSERT_EQ(seen.engine->begin(plan, *comm, number, {nullptr, &result, 4, Rig::sum}, {}, &run), Status::ok);
  seen.transport.on_progress = [&] {
    const int32_t value = 5;
    const Header header{number.bits(), comm->handle, 1, 0, Header::Kind::data};
    if (seen.host_polls == 3) seen.transport.inbox->arrived(header, {&value, 4, nullptr});
    return 0;
  };
  EXPECT_EQ(seen.engine->wait(*run, nullptr), Status::ok);
  EXPECT_EQ(result, 5);
  seen.engine->unlock();
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
