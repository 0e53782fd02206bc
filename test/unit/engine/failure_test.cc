// Failures end every operation, tell every peer, and touch nothing that is still in flight.
#include "test/unit/engine/rig.h"

namespace gpurdma {
namespace {

using Sent = Transport::Sent;
using Kind = Header::Kind;

// Rank 0 of 3 takes from 1 and gives to 2, and has a send of its own to 1.
Plan pass_on() {
  return plan_of(0, 3, [](Plan& p) {
    p.send(1, in(0, 1));
    const Slice slot = p.scratch(1);
    p.recv(slot, 1);
    p.reduce(out(0, 1), slot, in(0, 1));
    p.send(2, out(0, 1));
  });
}

TEST(Failure, WithoutScratchAllMessagesGoMarkedAndTheNextOperationWorks) {
  const CapturedLog log;
  Engine::Limits limits;
  limits.scratch = 256;
  Rig rig(0, 3, limits);
  const Plan large = plan_of(0, 3, [](Plan& p) {
    const Slice slot = p.scratch(100);
    p.send(1, in(0, 1));
    p.recv(slot, 1);
    p.send(2, slot);
  });
  rig.begin(large);
  rig.data(1, 0, Ints(100, 1));
  EXPECT_EQ(rig.ended(), Status::no_memory);
  EXPECT_TRUE(log.says("400 bytes of scratch"));
  ASSERT_EQ(rig.sent(Kind::failed), 2u);
  EXPECT_EQ(rig.sent(Kind::data), 0u);
  for (const auto& mark : rig.transport.sent) EXPECT_EQ(mark.bytes, 0u);
  EXPECT_EQ(rig.comm->closed, Status::ok);

  const Plan small = pass_on();
  rig.begin(small);
  rig.data(1, 0, {5});
  EXPECT_EQ(rig.ended(), Status::ok);
  EXPECT_EQ(rig.output[0], 6);
}

TEST(Failure, AMarkIsPassedOnAndDataIsLeftAlone) {
  const CapturedLog log;
  Rig rig(0, 3);
  rig.output[0] = -1;
  const Plan plan = pass_on();
  rig.begin(plan);
  rig.mark(1, 0);
  EXPECT_EQ(rig.ended(), Status::remote);
  ASSERT_EQ(rig.sent(Kind::failed), 1u);
  EXPECT_EQ(rig.transport.of_kind(Kind::failed)[0].peer, 12u);
  EXPECT_EQ(rig.output[0], -1);
  EXPECT_EQ(rig.comm->closed, Status::ok);
}

TEST(Failure, AMarkNeedsNoCredit) {
  const CapturedLog log;
  Rig rig(0, 3);
  const Plan plan = plan_of(0, 3, [](Plan& p) {
    p.recv(out(0, kBulk), 1);
    p.send(2, out(0, kBulk));
  });
  rig.begin(plan);
  rig.mark(1, 0);
  EXPECT_EQ(rig.sent(Kind::failed), 1u);
  EXPECT_EQ(rig.ended(), Status::remote);
}

TEST(Failure, OffersToAFailedOperationAreRefused) {
  const CapturedLog log;
  Rig rig(0, 3);
  const Plan plan = plan_of(0, 3, [](Plan& p) {
    p.recv(out(0, kBulk), 1);
    p.recv(out(kBulk, kBulk), 2);
  });
  rig.begin(plan);
  rig.mark(1, 0);
  Ints values(kBulk);
  rig.offer(2, 0, values);
  EXPECT_EQ(rig.transport.refused.size(), 1u);
  EXPECT_TRUE(rig.transport.fetched.empty());
  EXPECT_EQ(rig.ended(), Status::remote);
}

TEST(Failure, AnotherSizeClosesTheCommunicatorAndSaysSo) {
  const CapturedLog log;
  Rig rig(0, 3);
  const Plan plan = pass_on();
  rig.begin(plan);
  rig.data(1, 0, {1, 2});
  EXPECT_EQ(rig.ended(), Status::transport);
  EXPECT_TRUE(log.says("do all ranks pass the same count"));
  EXPECT_TRUE(log.says("peer rank 1 over rdma"));
  EXPECT_EQ(rig.sent(Kind::closed), 2u);
  rig.begin(plan);
  EXPECT_EQ(rig.status, Status::closed);
  EXPECT_EQ(rig.released, 2);
}

TEST(Failure, AMessageThatIsNotInThePlanClosesTheCommunicator) {
  for (const int from : {1, 2}) {
    const CapturedLog log;
    Rig rig(0, 3);
    const Plan plan = pass_on();
    rig.begin(plan);
    rig.data(from, 1, {1});
    EXPECT_EQ(rig.ended(), Status::transport);
    EXPECT_TRUE(log.says("not in the plan"));
  }
}

TEST(Failure, CloseTellsEveryPeerOnceAndEndsEveryOperation) {
  const CapturedLog log;
  Rig rig(0, 3);
  const Plan plan = pass_on();
  rig.begin(plan);
  rig.begin(plan);
  rig.transport.inbox->arrived({0, rig.comm->handle, 2, 0, Kind::closed}, {"", 0, nullptr});
  EXPECT_EQ(rig.ended(), Status::remote);
  EXPECT_EQ(rig.ended(), Status::remote);
  ASSERT_EQ(rig.sent(Kind::closed), 2u);
  EXPECT_EQ(rig.transport.of_kind(Kind::closed)[0].header.comm, 101u);
  rig.transport.inbox->arrived({0, rig.comm->handle, 1, 0, Kind::closed}, {"", 0, nullptr});
  EXPECT_EQ(rig.sent(Kind::closed), 2u);
  EXPECT_EQ(rig.engine.scratch_bytes(), 0u);
}

TEST(Failure, NothingEndsBeforeItsMemoryIsFree) {
  const CapturedLog log;
  Engine::Limits limits;
  limits.grace_s = 1000;
  Rig rig(0, 3, limits);
  rig.transport.send_result = rig.transport.fetch_result = Sent::pending;
  const Plan plan = plan_of(0, 3, [](Plan& p) {
    p.send(1, in(0, 1));
    p.recv(out(0, kBulk), 2);
  });
  rig.begin(plan);
  Ints values(kBulk);
  rig.offer(2, 0, values);
  rig.engine.close(*rig.comm, Status::peer_lost, 75);
  EXPECT_EQ(rig.ended(), Status::unsupported);
  rig.transport.inbox->completed(rig.transport.sent[0].token, Status::ok);
  rig.let_time_pass(0.005);
  EXPECT_EQ(rig.ended(), Status::unsupported);
  EXPECT_TRUE(rig.transport.abandoned.empty()) << "peers that live let go by themselves";
  rig.transport.inbox->completed(rig.transport.fetched[0].token, Status::ok);
  EXPECT_EQ(rig.ended(), Status::peer_lost);
  EXPECT_EQ(rig.host_error, 75);
}

TEST(Failure, PeersThatDoNotLetGoAreAbandonedAfterAWhile) {
  const CapturedLog log;
  Engine::Limits limits;
  limits.grace_s = 0.001;
  Rig rig(0, 3, limits);
  rig.transport.send_result = Sent::pending;
  const Plan plan = plan_of(0, 3, [](Plan& p) { p.send(1, in(0, 1)); });
  rig.begin(plan);
  rig.engine.close(*rig.comm, Status::deadline);
  rig.let_time_pass(0.005);
  ASSERT_FALSE(rig.transport.abandoned.empty());
  EXPECT_EQ(rig.transport.abandoned[0], 11u);
  rig.transport.inbox->completed(rig.transport.sent[0].token, Status::transport);
  EXPECT_EQ(rig.ended(), Status::deadline);
}

TEST(Failure, ALostPeerClosesItsCommunicatorsOnly) {
  const CapturedLog log;
  Rig rig(0, 3);
  Communicator* other = rig.engine.new_communicator(0, 2, "other", {});
  other->link(1) = rig.comm->link(2);
  const Plan plan = pass_on();
  rig.begin(plan);
  rig.transport.inbox->lost(11);
  EXPECT_EQ(rig.ended(), Status::peer_lost);
  EXPECT_EQ(rig.comm->closed, Status::peer_lost);
  EXPECT_EQ(rig.comm->link(1).state, Link::State::lost);
  EXPECT_EQ(other->closed, Status::ok);
  ASSERT_EQ(rig.sent(Kind::closed), 1u);
  EXPECT_EQ(rig.transport.of_kind(Kind::closed)[0].peer, 12u);
  rig.transport.inbox->lost(12);
  EXPECT_EQ(other->closed, Status::peer_lost);
}

TEST(Failure, ASendThatFailsClosesTheCommunicator) {
  const CapturedLog log;
  Rig rig(0, 3);
  rig.transport.send_result = Sent::failed;
  const Plan plan = pass_on();
  rig.begin(plan);
  EXPECT_EQ(rig.ended(), Status::transport);
  EXPECT_EQ(rig.comm->closed, Status::transport);
}

TEST(Failure, ALostMessageAfterAnotherFailureStillClosesTheCommunicator) {
  const CapturedLog log;
  Rig rig(0, 3);
  rig.transport.send_result = Sent::pending;
  const Plan plan = pass_on();
  rig.begin(plan);
  rig.mark(1, 0);
  EXPECT_EQ(rig.comm->closed, Status::ok);
  rig.transport.inbox->completed(rig.transport.sent[0].token, Status::transport);
  EXPECT_NE(rig.comm->closed, Status::ok) << "rank 1 would wait for ever";
  rig.transport.inbox->completed(rig.transport.of_kind(Kind::failed)[0].token, Status::ok);
  EXPECT_EQ(rig.ended(), Status::remote);
}

TEST(Failure, MemoryForEarlyMessagesRunsOut) {
  const CapturedLog log;
  ScriptedTransport transport;
  Memory little(0, 256);
  Mailbox mailbox(little);
  Communicator comm(0, 0, 2, "", {});
  NoGpus none(transport, mailbox, little);
  gpurdma::Run run(0, none.means);
  const Plan plan = plan_of(0, 2, [](Plan& p) {
    p.recv(out(0, 100), 1);
    p.send(1, out(0, 100));
    p.recv(out(0, 100), 1);
  });
  Ints output(100), values(100);
  ASSERT_EQ(run.bind(plan, comm, Number(), {nullptr, output.data(), 4, Rig::sum}, nullptr), Status::ok);
  run.start();
  run.arrived({0, 0, 1, 1, Kind::data}, {values.data(), 400, nullptr});
  EXPECT_EQ(run.status(), Status::no_memory);
  EXPECT_TRUE(run.out_of_step()) << "the engine must tell the peers";
  run.abandon(Status::no_memory);
  EXPECT_TRUE(run.over());
}

// ---- time ----

TEST(Deadline, ClosesTheCommunicatorAndNamesThePeers) {
  const CapturedLog log;
  Engine::Limits limits;
  limits.deadline_s = 0.002;
  Rig rig(0, 3, limits);
  const Plan plan = plan_of(0, 3, [](Plan& p) {
    p.recv(out(0, 1), 1);
    p.recv(out(1, 1), 2);
  });
  rig.begin(plan);
  rig.data(1, 0, {1});
  EXPECT_EQ(rig.ended(), Status::unsupported);
  rig.let_time_pass(0.005);
  EXPECT_EQ(rig.ended(), Status::deadline);
  EXPECT_TRUE(log.says("rank 0 gives up after 0.0 s, the deadline; it waits for rank 2\n")) << log.text();
}

TEST(Deadline, AStallIsReportedOnceWithThePeers) {
  const CapturedLog log;
  Engine::Limits limits;
  limits.stall_warning_s = 0.002;
  Rig rig(0, 13, limits);
  const Plan plan = plan_of(0, 13, [](Plan& p) {
    for (int r = 1; r < 13; ++r) p.recv(out(size_t(r), 1), r);
  });
  rig.begin(plan);
  rig.data(3, 0, {0});
  rig.let_time_pass(0.005);
  EXPECT_TRUE(log.says("in one operation for rank 1, 2, 4, 5, 6, 7, 8, 9, ...; are all ranks in it?")) << log.text();
  log.text().clear();
  rig.let_time_pass(0.005);
  EXPECT_EQ(log.text(), "");
  EXPECT_EQ(rig.comm->closed, Status::ok);
  for (int r = 1; r < 13; ++r)
    if (r != 3) rig.data(r, 0, {1});
  EXPECT_EQ(rig.ended(), Status::ok);
}

TEST(Deadline, PeersAreCheckedWhileSomethingWaits) {
  Rig rig(0, 2);
  const Plan plan = plan_of(0, 2, [](Plan& p) { p.recv(out(0, 1), 1); });
  rig.let_time_pass(0.005);
  EXPECT_EQ(rig.transport.peer_checks, 0);
  rig.begin(plan);
  rig.let_time_pass(0.005);
  EXPECT_GE(rig.transport.peer_checks, 1);
  rig.data(1, 0, {1});
}

TEST(Deadline, ARevokedCommunicatorGivesTheHostsError) {
  const CapturedLog log;
  CommHooks hooks;
  hooks.broken = [](void*) { return 42; };
  Rig rig(0, 2, {}, hooks);
  const Plan plan = plan_of(0, 2, [](Plan& p) { p.recv(out(0, 1), 1); });
  rig.begin(plan);
  rig.let_time_pass(0.005);
  EXPECT_EQ(rig.ended(), Status::peer_lost);
  EXPECT_EQ(rig.host_error, 42);
}

}  // namespace
}  // namespace gpurdma
