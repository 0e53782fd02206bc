#include "engine/communicator.h"

#include <memory>

#include "test/unit/engine/rig.h"

namespace gpurdma {
namespace {

// The host's side of one greeting between two ranks; `half` is the other rank's.
struct Mail {
  std::vector<char> sent;
  char* theirs = nullptr;
  const Mail* half = nullptr;
  int result = 0;  // until it is 1, nothing has come
  int ended = 0;
  bool refuse = false;

  static CommHooks hooks(Mail& mail) {
    CommHooks hooks;
    hooks.opaque = &mail;
    hooks.exchange = [](void* opaque, int, const void* mine, size_t bytes, void* theirs, size_t) -> void* {
      Mail& mail = *static_cast<Mail*>(opaque);
      mail.sent.assign(static_cast<const char*>(mine), static_cast<const char*>(mine) + bytes);
      mail.theirs = static_cast<char*>(theirs);
      return mail.refuse ? nullptr : &mail;
    };
    hooks.exchange_test = [](void* opaque, size_t* received) {
      Mail& mail = *static_cast<Mail*>(opaque);
      if (mail.result != 1) return mail.result;
      std::copy(mail.half->sent.begin(), mail.half->sent.end(), mail.theirs);
      *received = mail.half->sent.size();
      return 1;
    };
    hooks.exchange_end = [](void* opaque) { ++static_cast<Mail*>(opaque)->ended; };
    return hooks;
  }
};

struct Pair {
  ScriptedTransport transports[2];
  Mail mails[2];
  std::unique_ptr<Communicator> comms[2];

  Pair() {
    for (int r = 0; r < 2; ++r) {
      mails[r].half = &mails[1 - r];
      comms[r] = std::make_unique<Communicator>(uint32_t(50 + r), r, 2, "pair", Mail::hooks(mails[r]));
    }
  }
  void greet() {
    for (int r = 0; r < 2; ++r) comms[r]->greet(1 - r, transports[r]);
  }
  Link::State finish(int r) {
    mails[r].result = 1;
    EXPECT_EQ(comms[r]->poll_greetings(transports[r]), 1);
    EXPECT_FALSE(comms[r]->greeting());
    EXPECT_EQ(mails[r].ended, 1);
    return comms[r]->link(1 - r).state;
  }
};

TEST(Communicator, GreetingBringsPeerHandleAndPath) {
  Pair pair;
  pair.greet();
  EXPECT_EQ(pair.comms[0]->link(1).state, Link::State::exchanging);
  EXPECT_EQ(pair.comms[0]->poll_greetings(pair.transports[0]), 0);
  EXPECT_EQ(pair.finish(0), Link::State::up);
  EXPECT_EQ(pair.comms[0]->link(1).handle, 51u);
  EXPECT_EQ(pair.comms[0]->link(1).peer, 77u);
  EXPECT_EQ(pair.comms[0]->link(1).path, Path::shared_memory);
  EXPECT_EQ(pair.finish(1), Link::State::up);
  EXPECT_EQ(pair.comms[1]->link(0).handle, 50u);
}

TEST(Communicator, AnotherVersionIsNotLinked) {
  const CapturedLog log;
  Pair pair;
  pair.greet();
  pair.mails[1].sent[0] ^= 1;
  EXPECT_EQ(pair.finish(0), Link::State::lost);
  EXPECT_TRUE(log.says("two versions of gpurdma"));
}

TEST(Communicator, ACutHelloIsNotLinked) {
  for (const size_t bytes : {0, 3, 17}) {
    const CapturedLog log;
    Pair pair;
    pair.greet();
    pair.mails[1].sent.resize(bytes);
    EXPECT_EQ(pair.finish(0), Link::State::lost);
    EXPECT_TRUE(log.says("cannot be read"));
  }
}

TEST(Communicator, APeerThatIsNotAbleIsNotLinked) {
  const CapturedLog log;
  Pair pair;
  pair.transports[1].address_result = Status::transport;
  pair.greet();
  EXPECT_EQ(pair.finish(0), Link::State::lost);
  EXPECT_TRUE(log.says("rank 1 cannot take part"));
}

TEST(Communicator, AClosedOneSaysSoInItsHello) {
  const CapturedLog log;
  Pair pair;
  pair.comms[1]->closed = Status::deadline;
  pair.greet();
  EXPECT_EQ(pair.finish(0), Link::State::lost);
}

TEST(Communicator, FailuresOfTheHostAreLostLinks) {
  const CapturedLog log;
  Pair pair;
  pair.mails[0].refuse = true;
  pair.greet();
  EXPECT_EQ(pair.comms[0]->link(1).state, Link::State::lost);
  pair.mails[1].result = -1;
  EXPECT_EQ(pair.comms[1]->poll_greetings(pair.transports[1]), 1);
  EXPECT_EQ(pair.comms[1]->link(0).state, Link::State::lost);
  EXPECT_EQ(pair.mails[1].ended, 1);
}

TEST(Communicator, AnAddressThatDoesNotWorkIsALostLink) {
  Pair pair;
  pair.transports[0].connect_result = Status::transport;
  pair.greet();
  EXPECT_EQ(pair.finish(0), Link::State::lost);
}

TEST(Communicator, EndsGreetingsWhenItGoes) {
  Pair pair;
  pair.greet();
  pair.comms[0].reset();
  EXPECT_EQ(pair.mails[0].ended, 1);
}

TEST(Communicator, KnowsWhatHasStarted) {
  Communicator comm(0, 0, 1, "", {});
  const Number first = comm.next_call(CallClass::blocking);
  EXPECT_TRUE(comm.has_started(first));
  EXPECT_FALSE(comm.has_started(Number::call(CallClass::blocking, 1)));
  EXPECT_FALSE(comm.has_started(Number::call(CallClass::nonblocking, 0)));
  EXPECT_FALSE(comm.has_started(Number::start(0, 0))) << "not even made here";
  const uint32_t id = comm.new_persistent();
  EXPECT_FALSE(comm.has_started(Number::start(id, 0)));
  EXPECT_EQ(comm.next_start(id).bits(), Number::start(id, 0).bits());
  EXPECT_TRUE(comm.has_started(Number::start(id, 0)));
  EXPECT_FALSE(comm.has_started(Number::start(id, 1)));
}

// ---- what the engine makes of greetings ----

struct Greeted {
  Mail mail, other;
  Rig rig;
  Plan plan = plan_of(0, 2, [](Plan& p) { p.send(1, in(0, 1)); });

  Greeted() : rig(0, 2, {}, Mail::hooks(mail)) {
    mail.half = &other;
    rig.comm->link(1) = Link();
    Communicator peer(9, 1, 2, "", Mail::hooks(other));
    peer.greet(0, rig.transport);
  }
};

TEST(Greeting, OperationsQueueBehindIt) {
  Greeted g;
  g.rig.begin(g.plan);
  g.rig.begin(g.plan);
  g.rig.engine.progress();
  EXPECT_EQ(g.rig.sent(), 0u);
  g.mail.result = 1;
  g.rig.engine.progress();
  ASSERT_EQ(g.rig.sent(), 2u);
  EXPECT_EQ(g.rig.transport.sent[0].header.comm, 9u);
  EXPECT_EQ(g.rig.ended(), Status::ok);
  EXPECT_EQ(g.rig.ended(), Status::ok);
}

TEST(Greeting, ThatFailsFailsTheOperations) {
  const CapturedLog log;
  Greeted g;
  g.rig.begin(g.plan);
  g.mail.result = -1;
  g.rig.engine.progress();
  EXPECT_EQ(g.rig.ended(), Status::peer_lost);
  EXPECT_EQ(g.rig.comm->closed, Status::peer_lost);
  EXPECT_EQ(g.rig.sent(), 0u);
}

TEST(Greeting, OfAClosedCommunicatorSendsNothingButTheNews) {
  const CapturedLog log;
  Greeted g;
  g.rig.begin(g.plan);
  g.rig.engine.close(*g.rig.comm, Status::deadline);
  EXPECT_EQ(g.rig.ended(), Status::deadline);
  EXPECT_TRUE(g.rig.transport.sent.empty());
  g.mail.result = 1;
  g.rig.engine.progress();
  EXPECT_EQ(g.rig.sent(Header::Kind::closed), 1u);
  EXPECT_EQ(g.rig.transport.sent.size(), 1u);
}

}  // namespace
}  // namespace gpurdma
