#include "engine/stager.h"

#include <gtest/gtest.h>

#include "test/unit/engine/rig.h"
#include "test/unit/engine/scripted_gpus.h"

namespace gpurdma {
namespace {

struct Carried final : Stager::Listener {
  void carried(Token token, Status status) override { all.push_back({token, status}); }
  std::vector<std::pair<Token, Status>> all;
};

struct Stage : ::testing::Test {
  ~Stage() override {
    EXPECT_EQ(gpus.held, 0u);
    EXPECT_EQ(memory.in_use(), 0u);
    EXPECT_TRUE(gpus.asked.empty());
  }
  uint64_t count(GpuCount what) const { return counters.gpu[int(what)]; }

  std::vector<char> data = std::vector<char>(20000, 'x'), target = std::vector<char>(20000, '-');
  const Header header{1, 2, 3, 4, Header::Kind::data};
  ScriptedGpus gpus;
  ScriptedTransport transport;
  Memory memory{0};
  Counters counters;
  Carried carried;
  Stager stager{&gpus, transport, memory, counters, carried, Stager::Direct::never};
};

TEST_F(Stage, AMessageGoesThroughAPinnedPiece) {
  transport.send_result = Transport::Sent::pending;
  EXPECT_EQ(stager.send(0, 7, header, data.data(), 20000, 55), Status::ok);
  EXPECT_TRUE(transport.sent.empty()) << "nothing is in the piece yet";
  gpus.end();
  ASSERT_EQ(transport.sent.size(), 1u);
  EXPECT_EQ(transport.sent[0].peer, 7u);
  EXPECT_EQ(transport.sent[0].header.position, 4u);
  EXPECT_EQ(std::memcmp(transport.sent[0].data, data.data(), 20000), 0);
  EXPECT_TRUE(carried.all.empty());
  stager.completed(transport.sent[0].token, Status::ok);
  EXPECT_EQ(carried.all, (std::vector<std::pair<Token, Status>>{{55, Status::ok}}));
  EXPECT_EQ(count(GpuCount::staged_messages), 1u);
  EXPECT_EQ(count(GpuCount::staged_bytes), 20000u);
}

TEST_F(Stage, WhatCannotBeCopiedOutIsSentAsAMark) {
  EXPECT_EQ(stager.send(0, 7, header, data.data(), 20000, 55), Status::ok);
  gpus.end(Status::gpu);
  ASSERT_EQ(transport.sent.size(), 1u);
  EXPECT_EQ(transport.sent[0].header.kind, Header::Kind::failed);
  EXPECT_EQ(transport.sent[0].bytes, 0u);
  EXPECT_EQ(carried.all, (std::vector<std::pair<Token, Status>>{{55, Status::gpu}}));
  gpus.copies = Status::gpu;
  EXPECT_EQ(stager.send(0, 7, header, data.data(), 20000, 56), Status::gpu);
}

TEST_F(Stage, APayloadThatCameIsCopiedAsideAtOnce) {
  EXPECT_EQ(stager.receive(0, {data.data(), 20000, nullptr}, target.data(), 55), Status::ok);
  std::fill(data.begin(), data.end(), '!');
  gpus.end();
  EXPECT_EQ(target, std::vector<char>(20000, 'x'));
  EXPECT_EQ(carried.all.size(), 1u);
}

TEST_F(Stage, AnOfferIsFetchedFirst) {
  transport.fetch_result = Transport::Sent::pending;
  EXPECT_EQ(stager.receive(0, {nullptr, 20000, data.data()}, target.data(), 55), Status::ok);
  EXPECT_TRUE(gpus.asked.empty());
  ASSERT_EQ(transport.fetched.size(), 1u);
  std::memcpy(transport.fetched[0].data, data.data(), 20000);
  stager.completed(transport.fetched[0].token, Status::ok);
  gpus.end();
  EXPECT_EQ(target, data);
  EXPECT_EQ(carried.all, (std::vector<std::pair<Token, Status>>{{55, Status::ok}}));
}

TEST_F(Stage, AFetchThatFailsEndsTheMessage) {
  transport.fetch_result = Transport::Sent::pending;
  EXPECT_EQ(stager.receive(0, {nullptr, 20000, data.data()}, target.data(), 55), Status::ok);
  stager.completed(transport.fetched[0].token, Status::peer_lost);
  EXPECT_EQ(carried.all, (std::vector<std::pair<Token, Status>>{{55, Status::peer_lost}}));
  transport.fetch_result = Transport::Sent::failed;
  EXPECT_EQ(stager.receive(0, {nullptr, 20000, data.data()}, target.data(), 56), Status::transport);
}

TEST_F(Stage, ShortPinnedMemoryIsReplacedAndNoMemoryAtAllIsSaid) {
  gpus.pinned_is_short = true;
  EXPECT_EQ(stager.send(0, 7, header, data.data(), 20000, 55), Status::ok);
  EXPECT_GE(memory.in_use(), 20000u);
  gpus.end();
  EXPECT_EQ(carried.all.size(), 1u);
  Memory none(0, 0);
  Stager poor(&gpus, transport, none, counters, carried, Stager::Direct::never);
  EXPECT_EQ(poor.send(0, 7, header, data.data(), 20000, 56), Status::no_memory);
  EXPECT_EQ(poor.receive(0, {nullptr, 20000, data.data()}, target.data(), 57), Status::no_memory);
  EXPECT_EQ(transport.refused.size(), 1u) << "the sender waits for its payload to be taken";
}

TEST_F(Stage, GoesDirectlyWhereTheTransportTakesIt) {
  Stager direct(&gpus, transport, memory, counters, carried, Stager::Direct::always);
  transport.takes_gpus = true;
  EXPECT_EQ(direct.send(1, 7, header, data.data(), 20000, 55), Status::ok);
  gpus.end();
  ASSERT_EQ(transport.sent.size(), 1u);
  EXPECT_TRUE(transport.sent[0].from_gpu);
  EXPECT_EQ(direct.receive(1, {nullptr, 20000, data.data()}, target.data(), 56), Status::ok);
  ASSERT_EQ(transport.fetched.size(), 1u);
  EXPECT_TRUE(transport.fetched[0].to_gpu);
  gpus.end();
  EXPECT_EQ(target, data);
  EXPECT_EQ(count(GpuCount::direct_messages), 2u);
  EXPECT_EQ(count(GpuCount::staged_messages), 0u);
  // Small payloads travel with their message, which the CPU reads.
  EXPECT_EQ(direct.send(1, 7, header, data.data(), Transport::kInline, 57), Status::ok);
  gpus.end();
  EXPECT_FALSE(transport.sent[1].from_gpu);
  // And without room in the arena, through pinned memory.
  gpus.device_is_short = true;
  EXPECT_EQ(direct.send(1, 7, header, data.data(), 20000, 58), Status::ok);
  gpus.end();
  EXPECT_FALSE(transport.sent[2].from_gpu);
}

}  // namespace
}  // namespace gpurdma
