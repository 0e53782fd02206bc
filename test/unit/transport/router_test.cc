// Routers of one process, or of a forked one, that talk to each other: queues, offers, and ends that come too early.
#include "transport/router.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"

namespace gpurdma {
namespace {

using Sent = Transport::Sent;

constexpr size_t kLarge = PeerArena::kLargest + 1;  // bytes: fits no slot
constexpr uint32_t kCellsForAll = RingMemory::kCells - RingMemory::kKept;

// A router and what it told.
struct End final : Inbox {
  bool keeps_offers = false;
  std::vector<uint32_t> order;          // positions, as they arrived
  std::map<uint32_t, std::string> got;  // by position
  std::vector<void*> offers;            // that were kept
  std::map<Token, Status> ended;        // sends
  std::vector<PeerId> lost_peers;
  std::map<uint32_t, std::string> memory;  // of sends, by position, which is the token, too
  unsigned twice = 0, failed_fetches = 0;
  Router router;  // the last: when it goes it still sends what queues

  explicit End(size_t arena = Arena::kLeast, bool single_copy = true) : router(arena, single_copy) {
    router.attach(this);
  }
  ~End() { router.attach(nullptr); }

  PeerId meet(End& other) {
    Span<const char> address;
    EXPECT_EQ(other.router.address(&address), Status::ok);
    PeerId peer = 0;
    EXPECT_EQ(router.connect(address, &peer), Status::ok);
    return peer;
  }
  Sent send(PeerId to, uint32_t position, size_t bytes) {
    memory[position] = text(position, bytes);
    const std::string& data = memory[position];
    return router.send(to, {1, 2, 3, position, Header::Kind::data}, data.data(), bytes, position);
  }
  static std::string text(uint32_t position, size_t bytes) { return std::string(bytes, char('a' + position % 26)); }

  void arrived(const Header& header, const Payload& payload) override {
    order.push_back(header.position);
    twice += got.count(header.position) != 0;
    std::string& into = got[header.position];
    into.resize(payload.bytes);
    if (payload.data)
      into.assign(static_cast<const char*>(payload.data), payload.bytes);
    else if (keeps_offers)
      offers.push_back(payload.offer);
    else
      failed_fetches += router.fetch(payload.offer, into.data(), payload.bytes, kNoToken) == Sent::failed;
  }
  void completed(Token token, Status status) override { twice += !ended.emplace(token, status).second; }
  void lost(PeerId peer) override { lost_peers.push_back(peer); }
};

template <class F>
bool until(F true_now, std::vector<End*> ends) {
  for (int i = 0; i < 100000 && !true_now(); ++i)
    for (End* end : ends) end->router.progress();
  return true_now();
}

// Two that know each other.
struct Pair {
  End a, b;
  PeerId to_b, to_a;
  explicit Pair(size_t arena = Arena::kLeast, bool single_copy = true)
      : a(arena, single_copy), b(arena, single_copy), to_b(a.meet(b)), to_a(b.meet(a)) {}
  // Small messages from b to a, which fill all the cells that there are for them.
  void fill_b_to_a() {
    for (uint32_t i = 0; i < kCellsForAll; ++i) ASSERT_EQ(b.send(to_a, 100 + i, 5), Sent::done);
  }
};

// Lines are expected while this lives.
struct Quiet {
  Quiet() {
    log::configure(log::Level::warn, [](log::Level, const char*) {});
  }
  ~Quiet() { log::configure(log::Level::warn, nullptr); }
};

TEST(Router, QueuesWhatFindsNoRoomInOrderAndEndsItOnce) {
  Pair p;
  constexpr uint32_t kMessages = 300;
  std::vector<Token> pending;
  for (uint32_t i = 0; i < kMessages; ++i)
    if (p.a.send(p.to_b, i, i % 3 == 0 ? i : i % 3 == 1 ? 50 * i : 5000) == Sent::pending) pending.push_back(i);
  EXPECT_GT(pending.size(), kMessages / 2);
  EXPECT_EQ(p.a.router.reserve(p.to_b, 8), nullptr) << "it would overtake the queue";
  EXPECT_TRUE(until([&] { return p.b.got.size() == kMessages && p.a.ended.size() == pending.size(); }, {&p.a, &p.b}));
  EXPECT_TRUE(std::is_sorted(p.b.order.begin(), p.b.order.end()));
  for (const auto& [position, text] : p.b.got) EXPECT_EQ(text, p.a.memory[position]) << position;
  for (const Token token : pending) EXPECT_EQ(p.a.ended[token], Status::ok);
  EXPECT_EQ(p.a.twice + p.b.twice, 0u);
}

TEST(Router, AReservedSlotIsTheNextMessage) {
  Pair p;
  for (const size_t bytes : {size_t(0), size_t(96), size_t(97), PeerArena::kLargest}) {
    void* const slot = p.a.router.reserve(p.to_b, bytes);
    ASSERT_NE(slot, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(slot) % 32, 0u);
    std::fill_n(static_cast<char*>(slot), bytes, 'x');
    p.a.router.commit(p.to_b, {1, 2, 3, uint32_t(bytes), Header::Kind::data}, bytes);
    p.b.router.progress();
    EXPECT_EQ(p.b.got[uint32_t(bytes)], std::string(bytes, 'x'));
  }
  EXPECT_EQ(p.a.router.reserve(p.to_b, kLarge), nullptr);
}

TEST(Router, WhatFitsNoSlotIsCopiedFromTheSender) {
  Pair p;
  constexpr uint32_t kMessages = 9;  // more than may be on offer at once
  for (uint32_t i = 0; i < kMessages; ++i) EXPECT_EQ(p.a.send(p.to_b, i, kLarge + i), Sent::pending);
  EXPECT_TRUE(until([&] { return p.a.ended.size() == kMessages; }, {&p.a, &p.b}));
  EXPECT_EQ(p.b.got, p.a.memory);
  EXPECT_EQ(p.b.failed_fetches + p.a.twice + p.b.twice, 0u);
}

// What b owes a for an offer must not stay with b, which may compute for long when it has all that it needs.
TEST(Router, WhoTookAPayloadNeedsNoFurtherProgress) {
  Pair p;
  for (uint32_t i = 0; i < RingMemory::kMostOffers; ++i) EXPECT_EQ(p.a.send(p.to_b, i, kLarge), Sent::pending);
  p.fill_b_to_a();
  EXPECT_EQ(p.b.send(p.to_a, 200, 5), Sent::pending);
  p.b.router.progress();
  EXPECT_EQ(p.b.got.size(), RingMemory::kMostOffers);
  EXPECT_TRUE(until([&] { return p.a.ended.size() == RingMemory::kMostOffers; }, {&p.a}));
}

TEST(Router, ARefusedOfferCompletes) {
  Pair p;
  p.b.keeps_offers = true;
  p.a.send(p.to_b, 1, kLarge);
  p.b.router.progress();
  p.a.router.progress();
  ASSERT_EQ(p.b.offers.size(), 1u);
  EXPECT_TRUE(p.a.ended.empty());
  p.b.router.refuse(p.b.offers[0]);
  p.a.router.progress();
  EXPECT_EQ(p.a.ended, (std::map<Token, Status>{{1, Status::ok}}));
}

TEST(Router, WithoutSingleCopyWhatFitsNoSlotGoesOverUcx) {
  Pair p(Arena::kLeast, false);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(p.a.send(p.to_b, i, kLarge), Sent::pending);
  EXPECT_TRUE(until([&] { return p.a.ended.size() == 4 && p.b.got.size() == 4; }, {&p.a, &p.b}));
  EXPECT_TRUE(until([&] { return p.b.got == p.a.memory; }, {&p.a, &p.b}));
}

// The smallest arena has three lanes.
void lanes_run_out(bool single_copy) {
  End owner(Arena::kLeast, single_copy);
  std::vector<std::unique_ptr<End>> others;
  for (uint32_t i = 0; i < 5; ++i) {
    others.push_back(std::make_unique<End>(Arena::kLeast, single_copy));
    const PeerId to_owner = others[i]->meet(owner);
    (void)owner.meet(*others[i]);
    const Sent sent = others[i]->send(to_owner, i, 20000);
    EXPECT_EQ(sent, i < 3 ? Sent::done : Sent::pending);
  }
  std::map<uint32_t, std::string> all;
  for (const auto& other : others) all.insert(other->memory.begin(), other->memory.end());
  EXPECT_TRUE(until([&] { return owner.got == all && others[3]->ended.size() == 1 && others[4]->ended.size() == 1; },
                    {&owner, others[3].get(), others[4].get()}));
}

TEST(Router, WithoutALaneAPayloadIsOffered) { lanes_run_out(true); }
TEST(Router, WithoutALaneOrSingleCopyAPayloadGoesOverUcx) { lanes_run_out(false); }

TEST(Router, AbandonedMessagesEndWithAnErrorAndOnlyInProgress) {
  const Quiet quiet;
  Pair p;
  for (uint32_t i = 0; i < 5; ++i) p.a.send(p.to_b, i, kLarge);  // some on offer, the others in the queue
  p.a.send(p.to_b, 5, 8);
  p.a.router.abandon(p.to_b);
  EXPECT_TRUE(p.a.ended.empty());
  EXPECT_EQ(p.a.send(p.to_b, 6, 8), Sent::failed);
  EXPECT_EQ(p.a.router.reserve(p.to_b, 8), nullptr);
  EXPECT_TRUE(until([&] { return p.a.ended.size() == 6; }, {&p.a}));
  for (const auto& [token, status] : p.a.ended) EXPECT_EQ(status, Status::peer_lost) << token;
  EXPECT_TRUE(p.a.lost_peers.empty()) << "who abandons knows";
  for (int i = 0; i < 100; ++i) p.b.router.progress();
  p.a.router.progress();
  EXPECT_EQ(p.a.twice, 0u);
}

// The sender's memory may hold something else by then.
TEST(Router, AnOfferOfOneWhoGaveUpIsNotTaken) {
  const Quiet quiet;
  Pair p;
  p.b.keeps_offers = true;
  p.a.send(p.to_b, 1, kLarge);
  p.a.send(p.to_b, 2, kLarge);
  p.b.router.progress();
  ASSERT_EQ(p.b.offers.size(), 2u);
  std::vector<char> into(kLarge);
  EXPECT_EQ(p.b.router.fetch(p.b.offers[0], into.data(), kLarge, 1), Sent::done);
  p.a.router.abandon(p.to_b);
  EXPECT_EQ(p.b.router.fetch(p.b.offers[1], into.data(), kLarge, 1), Sent::failed);
}

TEST(Router, WhoWasGivenUpLearnsItAfterTheLastMessage) {
  const Quiet quiet;
  Pair p;
  for (uint32_t i = 0; i < kCellsForAll; ++i) ASSERT_EQ(p.a.send(p.to_b, i, 8), Sent::done);
  p.a.router.abandon(p.to_b);
  EXPECT_TRUE(p.b.lost_peers.empty());
  p.b.router.check_peers();
  EXPECT_EQ(p.b.got.size(), kCellsForAll);
  EXPECT_EQ(p.b.lost_peers, std::vector<PeerId>{p.to_a});
  p.b.router.check_peers();
  EXPECT_EQ(p.b.lost_peers.size(), 1u);
  EXPECT_EQ(p.b.send(p.to_a, 1, 8), Sent::failed);
}

TEST(Router, APeerThatEndsAsItShouldIsNotLost) {
  End a;
  {
    End b;
    (void)a.meet(b);
    b.send(b.meet(a), 1, 8);
  }
  a.router.check_peers();
  a.router.progress();
  a.router.check_peers();
  EXPECT_TRUE(a.lost_peers.empty());
  EXPECT_EQ(a.got.size(), 1u);
}

// Both may have something queued for the other when both end.
TEST(Router, WhoListensNoMoreStillMakesRoom) {
  Pair p;
  p.a.keeps_offers = true;
  p.fill_b_to_a();
  EXPECT_EQ(p.b.send(p.to_a, 1, 8), Sent::pending);
  EXPECT_EQ(p.b.send(p.to_a, 2, kLarge), Sent::pending);
  p.a.router.attach(nullptr);
  EXPECT_TRUE(until([&] { return p.b.ended.size() == 2; }, {&p.a, &p.b}));
  EXPECT_TRUE(p.a.got.empty());
}

// A child that sends as many messages as there is room for, and dies.
TEST(Router, WhatTheDeadHadSentArrivesBeforeTheirDeathDoes) {
  const Quiet quiet;
  End a;
  Span<const char> mine;
  ASSERT_EQ(a.router.address(&mine), Status::ok);
  int name[2], go[2];
  ASSERT_EQ(pipe(name), 0);
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  if (child == 0) {
    End b;
    Span<const char> address;
    PeerId to_a;
    char byte;
    if (b.router.address(&address) != Status::ok || write(name[1], address.data(), address.size()) < 0 ||
        read(go[0], &byte, 1) != 1 || b.router.connect(mine, &to_a) != Status::ok)
      _exit(1);
    for (uint32_t i = 0; i + 1 < kCellsForAll; ++i)
      if (b.send(to_a, i, 8) != Sent::done) _exit(2);
    b.send(to_a, 99, kLarge);
    _exit(0);
  }
  std::vector<char> address(1 << 16);
  const ssize_t n = read(name[0], address.data(), address.size());
  ASSERT_GT(n, 0);
  PeerId to_b;
  ASSERT_EQ(a.router.connect({address.data(), size_t(n)}, &to_b), Status::ok);
  ASSERT_EQ(write(go[1], "", 1), 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(a.send(to_b, 7, kLarge), Sent::pending);
  a.router.check_peers();
  EXPECT_EQ(a.order.size(), kCellsForAll);
  EXPECT_EQ(a.failed_fetches, 1u) << "its memory went with it";
  EXPECT_EQ(a.lost_peers, std::vector<PeerId>{to_b});
  EXPECT_TRUE(until([&] { return a.ended.size() == 1; }, {&a}));
  EXPECT_EQ(a.ended[7], Status::peer_lost);
  for (const int end : {name[0], name[1], go[0], go[1]}) close(end);
}

}  // namespace
}  // namespace gpurdma
