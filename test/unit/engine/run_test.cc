// How a run takes its plan through: order, credits, where payloads go.
#include "engine/run.h"

#include <algorithm>

#include "test/unit/engine/rig.h"

namespace gpurdma {
namespace {

using Sent = Transport::Sent;
constexpr uint32_t kSendsInFlight = Run::kSendsInFlight;

TEST(Sending, SmallGoesAtOnceAndBulkWaitsForCredit) {
  Rig rig(0, 2);
  const Plan small = plan_of(0, 2, [](Plan& p) { p.send(1, in(0, 5)); });
  rig.begin(small);
  ASSERT_EQ(rig.sent(), 1u);
  const auto message = rig.transport.sent[0];
  EXPECT_EQ(message.peer, 11u);
  EXPECT_EQ(message.header.comm, 101u);
  EXPECT_EQ(message.header.source, 0u);
  EXPECT_EQ(message.header.operation, rig.number.bits());
  EXPECT_EQ(message.data, rig.input.data());
  EXPECT_EQ(message.bytes, 20u);
  EXPECT_EQ(rig.ended(), Status::ok);

  const Plan bulk = plan_of(0, 2, [](Plan& p) { p.send(1, in(0, kBulk)); });
  rig.begin(bulk);
  EXPECT_EQ(rig.sent(), 1u);
  EXPECT_EQ(rig.ended(), Status::unsupported);
  rig.credit(1, 1);
  EXPECT_EQ(rig.sent(), 2u);
  EXPECT_EQ(rig.ended(), Status::ok);
  EXPECT_EQ(rig.released, 2);
}

TEST(Sending, BeforeCreditNoMoreThanOneInlineMessage) {
  Rig rig(0, 2);
  const Plan plan = plan_of(0, 2, [](Plan& p) {
    for (int i = 0; i < 4; ++i) p.send(1, in(0, 1024));
  });
  rig.begin(plan);
  EXPECT_EQ(rig.sent() * 4096, size_t(Transport::kInline));
  rig.credit(1, 3);
  EXPECT_EQ(rig.sent(), 3u);
  rig.credit(1, 2);  // an older one that came late
  EXPECT_EQ(rig.sent(), 3u);
  rig.credit(1, 4);
  EXPECT_EQ(rig.sent(), 4u);
}

TEST(Sending, ProgramOrderToEachPeer) {
  Rig rig(0, 3);
  const Plan plan = plan_of(0, 3, [](Plan& p) {
    p.recv(out(0, 1), 1);
    p.send(1, out(0, 1));  // waits for the recv
    p.send(1, in(1, 1));   // could go, but not before
    p.send(2, in(2, 1));   // another peer
  });
  rig.begin(plan);
  ASSERT_EQ(rig.sent(), 1u);
  EXPECT_EQ(rig.transport.sent[0].peer, 12u);
  rig.data(1, 0, {5});
  ASSERT_EQ(rig.sent(), 3u);
  EXPECT_EQ(rig.transport.sent[1].data, rig.output.data());
  EXPECT_EQ(rig.transport.sent[1].header.position, 0u);
  EXPECT_EQ(rig.transport.sent[2].data, rig.input.data() + 1);
  EXPECT_EQ(rig.transport.sent[2].header.position, 1u);
}

TEST(Sending, AtMostSoManyInFlightToOnePeer) {
  Rig rig(0, 3);
  rig.transport.send_result = Sent::pending;
  constexpr uint32_t kMessages = kSendsInFlight + 8;
  const Plan plan = plan_of(0, 3, [](Plan& p) {
    for (uint32_t i = 0; i < kMessages; ++i) p.send(1, in(i, 1));
    p.send(2, in(0, 1));
  });
  rig.begin(plan);
  ASSERT_EQ(rig.sent(), kSendsInFlight + 1);  // and the one to the other peer
  for (uint32_t i = 0; i < rig.transport.sent.size(); ++i) {
    EXPECT_EQ(rig.ended(), Status::unsupported);
    rig.transport.inbox->completed(rig.transport.sent[i].token, Status::ok);
    EXPECT_EQ(rig.sent(), std::min(kSendsInFlight + 2 + i, kMessages + 1));
  }
  EXPECT_EQ(rig.ended(), Status::ok);
}

TEST(Sending, MemoryIsNotWrittenWhileInFlight) {
  Rig rig(0, 2);
  rig.transport.send_result = Sent::pending;
  const Plan plan = plan_of(0, 2, [](Plan& p) {
    p.copy(out(0, 2), in(0, 2));
    p.send(1, out(0, 2));
    p.recv(out(0, 2), 1);
  });
  rig.begin(plan);
  rig.data(1, 0, {8, 9});
  EXPECT_EQ(rig.output[0], 1);
  rig.transport.inbox->completed(rig.transport.sent[0].token, Status::ok);
  EXPECT_EQ(rig.output[0], 8);
  EXPECT_EQ(rig.output[1], 9);
  EXPECT_EQ(rig.ended(), Status::ok);
  EXPECT_EQ(rig.engine.early_bytes(), 0u);
}

// ---- receiving ----

Plan receive_and_reduce(bool lower) {
  return plan_of(0, 2, [&](Plan& p) {
    const Slice slot = p.scratch(4);
    p.recv(slot, 1);
    if (lower)
      p.reduce(out(0, 4), slot, in(0, 4));
    else
      p.reduce(out(0, 4), in(0, 4), slot);
  });
}

// Rank 1 of a chain: what comes from rank 0 is reduced and sent to rank 2.
Plan reduce_and_send(size_t n = 3) {
  return plan_of(1, 3, [n](Plan& p) {
    const Slice slot = p.scratch(n);
    p.recv(slot, 0);
    p.reduce(out(0, n), slot, in(0, n));
    p.send(2, out(0, n));
  });
}

TEST(Forwarding, WritesTheResultToTheSlotAndToItsPlace) {
  Rig rig(1, 3);
  rig.transport.slot.resize(3000, -1);
  const Plan plan = reduce_and_send(3000);  // more than one part
  Ints from_left(3000, 7);
  rig.begin(plan);
  rig.credit(2, 1);
  rig.data(0, 0, from_left);
  const auto data = rig.transport.of_kind(Header::Kind::data);
  ASSERT_EQ(data.size(), 1u);
  EXPECT_EQ(data[0].data, rig.transport.slot.data());
  EXPECT_EQ(data[0].bytes, 12000u);
  EXPECT_EQ(data[0].peer, 12u);
  EXPECT_EQ(data[0].header.comm, 102u);
  EXPECT_EQ(data[0].header.position, 0u);
  EXPECT_EQ(data[0].header.operation, rig.number.bits());
  for (int i = 0; i < 3000; ++i) {
    ASSERT_EQ(rig.output[size_t(i)], 8 + i);
    ASSERT_EQ(rig.transport.slot[size_t(i)], 8 + i);
  }
  EXPECT_EQ(rig.ended(), Status::ok);
  EXPECT_EQ(rig.counters.sent_bytes[int(Path::rdma)], 12000u);
}

// So large an output is written past the caches; the values are the same, also at odd places.
TEST(Forwarding, OfALargeOutput) {
  Rig rig(1, 3);
  rig.operand_bytes = size_t(1) << 30;
  rig.transport.slot.resize(5000, -1);
  const Plan plan = plan_of(1, 3, [](Plan& p) {
    const Slice slot = p.scratch(3001);
    p.recv(slot, 0);
    p.reduce(out(3, 3001), slot, in(0, 3001));
    p.send(2, out(3, 3001));
    p.recv(out(3100, 777), 0);
  });
  rig.begin(plan);
  rig.credit(2, 1);
  rig.data(0, 0, Ints(3001, 7));
  rig.data(0, 1, Ints(777, 9));
  EXPECT_EQ(rig.ended(), Status::ok);
  EXPECT_EQ(rig.output[2], 0);
  for (int i = 0; i < 3001; ++i) {
    ASSERT_EQ(rig.output[size_t(3 + i)], 8 + i);
    ASSERT_EQ(rig.transport.slot[size_t(i)], 8 + i);
  }
  EXPECT_EQ(rig.output[3004], 0);
  EXPECT_EQ(std::count(rig.output.begin() + 3100, rig.output.begin() + 3877, 9), 777);
  EXPECT_EQ(rig.output[3877], 0);
}

TEST(Forwarding, SendsFromMemoryWhereThereIsNoSlot) {
  Rig rig(1, 3);
  const Plan plan = reduce_and_send();
  rig.begin(plan);
  rig.data(0, 0, {7, 7, 7});
  EXPECT_EQ(rig.transport.reservations, 1);
  ASSERT_EQ(rig.sent(), 1u);
  EXPECT_EQ(rig.transport.sent[0].data, rig.output.data());
  EXPECT_EQ(rig.ended(), Status::ok);
}

TEST(Forwarding, DoesNotOvertakeAnEarlierSendNorGoWithoutCredit) {
  Rig rig(1, 3);
  rig.transport.slot.resize(kBulk);
  const Plan behind = plan_of(1, 3, [](Plan& p) {
    const Slice slot = p.scratch(1), first = p.scratch(1);
    p.recv(first, 0);
    p.recv(slot, 0);
    p.send(2, first);
    p.reduce(out(0, 1), slot, in(0, 1));
    p.send(2, out(0, 1));
  });
  rig.begin(behind);
  rig.data(0, 1, {7});
  EXPECT_EQ(rig.transport.reservations, 0) << "the first send has not gone";
  rig.data(0, 0, {5});
  ASSERT_EQ(rig.sent(), 2u);
  EXPECT_EQ(rig.transport.sent[1].data, rig.output.data());
  EXPECT_EQ(rig.ended(), Status::ok);

  const Plan bulk = reduce_and_send(kBulk);
  Ints values(kBulk, 1);
  rig.begin(bulk);
  const size_t before = rig.transport.of_kind(Header::Kind::data).size();
  rig.data(0, 0, values);
  EXPECT_EQ(rig.transport.reservations, 0) << "no credit";
  rig.credit(2, 1);
  EXPECT_EQ(rig.transport.of_kind(Header::Kind::data).size(), before + 1);
  EXPECT_EQ(rig.ended(), Status::ok);
}

TEST(Forwarding, NoMoreThanMayBeInFlight) {
  Rig rig(1, 3);
  rig.transport.slot.resize(1);
  rig.transport.send_result = Sent::pending;
  const Plan plan = plan_of(1, 3, [](Plan& p) {
    const Slice slot = p.scratch(1);
    for (uint32_t i = 0; i < kSendsInFlight; ++i) p.send(2, in(1 + i, 1));
    p.recv(slot, 0);
    p.reduce(out(0, 1), slot, in(0, 1));
    p.send(2, out(0, 1));
  });
  rig.begin(plan);
  rig.data(0, 0, {7});
  EXPECT_EQ(rig.transport.reservations, 0);
  ASSERT_EQ(rig.sent(), kSendsInFlight);
  for (uint32_t i = 0; i <= kSendsInFlight; ++i)
    rig.transport.inbox->completed(rig.transport.sent[i].token, Status::ok);
  EXPECT_EQ(rig.sent(), kSendsInFlight + 1);
  EXPECT_EQ(rig.ended(), Status::ok);
}

TEST(Forwarding, InPlaceItReadsBeforeItWrites) {
  Rig rig(1, 3);
  rig.transport.slot.resize(3000, -1);
  for (const size_t operand_bytes : {size_t(12000), size_t(1) << 30}) {
    rig.operand_bytes = operand_bytes;
    std::fill(rig.output.begin(), rig.output.end(), 100);
    const Plan plan = plan_of(1, 3, [](Plan& p) {
      const Slice slot = p.scratch(3000);
      p.recv(slot, 0);
      p.reduce(out(0, 3000), slot, out(0, 3000));
      p.send(2, out(0, 3000));
    });
    rig.begin(plan);
    rig.credit(2, 1);
    rig.data(0, 0, Ints(3000, 7));
    EXPECT_EQ(rig.ended(), Status::ok);
    EXPECT_EQ(std::count(rig.output.begin(), rig.output.begin() + 3000, 107), 3000);
    EXPECT_EQ(std::count(rig.transport.slot.begin(), rig.transport.slot.end(), 107), 3000);
  }
}

TEST(Forwarding, WhatIsBehindItGoesOutToo) {
  Rig rig(1, 3);
  rig.transport.slot.resize(1);
  const Plan plan = plan_of(1, 3, [](Plan& p) {
    const Slice slot = p.scratch(1);
    p.recv(slot, 0);
    p.reduce(out(0, 1), slot, in(0, 1));
    p.send(2, out(0, 1));
    p.send(2, in(5, 2));  // ready from the beginning, but not before
  });
  rig.begin(plan);
  EXPECT_EQ(rig.sent(), 0u);
  rig.data(0, 0, {7});
  ASSERT_EQ(rig.sent(), 2u);
  EXPECT_EQ(rig.transport.sent[1].data, rig.input.data() + 5);
  EXPECT_EQ(rig.ended(), Status::ok);
}

TEST(Forwarding, AFailedOperationSendsItsMarkAlone) {
  Rig rig(1, 3);
  rig.transport.slot.resize(3);
  const Plan plan = reduce_and_send();
  rig.begin(plan);
  rig.mark(0, 0);
  EXPECT_EQ(rig.transport.reservations, 0);
  ASSERT_EQ(rig.transport.of_kind(Header::Kind::failed).size(), 1u);
  EXPECT_EQ(rig.ended(), Status::remote);
}

TEST(Receiving, ReducesStraightOutOfTheMessage) {
  for (const bool lower : {true, false}) {
    Rig rig(0, 2);
    const Plan plan = receive_and_reduce(lower);
    rig.begin(plan);
    const void* payload = rig.data_at(1, 0, {10, 20, 30, 40}, 4);
    ASSERT_EQ(rig.reductions().size(), 1u);
    EXPECT_EQ(rig.reductions()[0].dst, rig.output.data());
    EXPECT_EQ(lower ? rig.reductions()[0].left : rig.reductions()[0].right, payload);
    EXPECT_EQ(lower ? rig.reductions()[0].right : rig.reductions()[0].left, rig.input.data());
    EXPECT_EQ(rig.output[3], 44);
    EXPECT_EQ(rig.ended(), Status::ok);
  }
}

TEST(Receiving, CopiesWhatLiesAtAnOddAddress) {
  Rig rig(0, 2);
  const Plan plan = receive_and_reduce(true);
  gpurdma::Run* run = rig.begin(plan);
  const void* slot = run->scratch();
  rig.data_at(1, 0, {10, 20, 30, 40}, 2);
  ASSERT_EQ(rig.reductions().size(), 1u);
  EXPECT_EQ(rig.reductions()[0].left, slot);
  EXPECT_EQ(rig.output[3], 44);
  EXPECT_EQ(rig.ended(), Status::ok);
}

TEST(Receiving, CopiesWhenTheOtherOperandIsNotThereYet) {
  Rig rig(0, 3);
  const Plan plan = plan_of(0, 3, [](Plan& p) {
    const Slice slot = p.scratch(1);
    p.recv(out(0, 1), 1);
    p.recv(slot, 2);
    p.reduce(out(0, 1), out(0, 1), slot);
  });
  rig.begin(plan);
  rig.data(2, 0, {100});
  EXPECT_TRUE(rig.reductions().empty());
  rig.data(1, 0, {11});
  EXPECT_EQ(rig.output[0], 111);
  EXPECT_EQ(rig.ended(), Status::ok);
}

// One slot through which all messages pass.
Plan through_one_slot(int messages, size_t n) {
  return plan_of(0, 2, [&](Plan& p) {
    const Slice slot = p.scratch(n);
    p.copy(out(0, n), in(0, n));
    for (int i = 0; i < messages; ++i) {
      p.recv(slot, 1);
      p.reduce(out(0, n), out(0, n), slot);
    }
  });
}

TEST(Receiving, ParksWhatComesBeforeItsPlaceIsFree) {
  Rig rig(0, 2);
  const Plan plan = through_one_slot(3, 1);
  rig.begin(plan);
  rig.data(1, 2, {300});
  rig.data(1, 1, {20});
  EXPECT_GT(rig.engine.early_bytes(), 0u);
  EXPECT_TRUE(rig.reductions().empty());
  rig.data(1, 0, {4000});
  EXPECT_EQ(rig.output[0], 4321);
  EXPECT_EQ(rig.ended(), Status::ok);
  EXPECT_EQ(rig.engine.early_bytes(), 0u);
  EXPECT_EQ(rig.engine.scratch_bytes(), 0u);
}

TEST(Receiving, SmallMessagesNeedNoCredit) {
  Rig rig(0, 2);
  const Plan plan = through_one_slot(8, 1);
  rig.begin(plan);
  for (uint32_t i = 0; i < 8; ++i) rig.data(1, i, {1});
  EXPECT_EQ(rig.ended(), Status::ok);
  EXPECT_TRUE(rig.transport.sent.empty());
}

TEST(Receiving, GrantsCreditWhenThePlaceIsFree) {
  Rig rig(0, 2);
  const Plan plan = through_one_slot(3, kBulk);
  rig.begin(plan);
  EXPECT_EQ(rig.granted(1), 1u);
  rig.data(1, 0, Ints(kBulk, 10));
  EXPECT_EQ(rig.granted(1), 2u);
  rig.data(1, 1, Ints(kBulk, 20));
  rig.data(1, 2, Ints(kBulk, 30));
  EXPECT_EQ(rig.ended(), Status::ok);
  EXPECT_EQ(rig.output[kBulk - 1], int32_t(60 + kBulk));
  EXPECT_EQ(rig.sent(Header::Kind::credit), 3u);
}

TEST(Receiving, GrantsMuchCreditInFewMessages) {
  Rig rig(0, 2);
  constexpr uint32_t kSlots = 8, kMessages = 64;
  const Plan plan = plan_of(0, 2, [](Plan& p) {
    Slice slots[kSlots];
    for (Slice& slot : slots) slot = p.scratch(kBulk);
    p.copy(out(0, kBulk), in(0, kBulk));
    for (uint32_t i = 0; i < kMessages; ++i) {
      p.recv(slots[i % kSlots], 1);
      p.reduce(out(0, kBulk), out(0, kBulk), slots[i % kSlots]);
    }
  });
  rig.begin(plan);
  EXPECT_EQ(rig.granted(1), kSlots);
  for (uint32_t i = 0; i < kMessages; ++i) {
    EXPECT_GT(rig.granted(1), i) << "the sender starves";
    EXPECT_LE(rig.granted(1), i + kSlots) << "there is no such place";
    rig.data(1, i, Ints(kBulk, 0));
  }
  EXPECT_EQ(rig.ended(), Status::ok);
  EXPECT_LE(rig.sent(Header::Kind::credit), kMessages / 2);
}

TEST(Receiving, GrantsEvenLittleCreditToASenderThatHasNone) {
  Rig rig(0, 3);
  const Plan plan = plan_of(0, 3, [](Plan& p) {
    for (size_t i = 0; i < 4; ++i) p.recv(out(i * 1024, 1024), 1);  // 8 KiB go without credit, but
    const Slice slot = p.scratch(kBulk);
    for (int i = 0; i < 3; ++i) {
      p.recv(slot, 1);
      p.reduce(out(4096, kBulk), in(0, kBulk), slot);
      p.recv(out(0, 1), 2);
      p.reduce(slot, slot, {Buf::output, 0, kBulk});  // the slot is free when rank 2 has sent something
    }
  });
  rig.begin(plan);
  const uint32_t first = rig.granted(1);
  EXPECT_EQ(first, 5u);
  for (uint32_t i = 0; i < 4; ++i) rig.data(1, i, Ints(1024, 1));
  rig.data(1, 4, Ints(kBulk, 1));
  EXPECT_EQ(rig.granted(1), 5u);
  rig.data(2, 0, {1});
  EXPECT_EQ(rig.granted(1), 6u) << "one more, less than is usually worth a message";
  for (uint32_t i = 1; i < 3; ++i) {
    rig.data(1, 4 + i, Ints(kBulk, 1));
    rig.data(2, i, {1});
  }
  EXPECT_EQ(rig.ended(), Status::ok);
}

TEST(Receiving, FetchesAnOfferToItsPlace) {
  for (const Sent result : {Sent::done, Sent::pending}) {
    Rig rig(0, 2);
    rig.transport.fetch_result = result;
    const Plan plan = plan_of(0, 2, [](Plan& p) { p.recv(out(3, kBulk), 1); });
    rig.begin(plan);
    Ints values(kBulk, 7);
    rig.offer(1, 0, values);
    ASSERT_EQ(rig.transport.fetched.size(), 1u);
    EXPECT_EQ(rig.transport.fetched[0].data, rig.output.data() + 3);
    if (result == Sent::pending) {
      EXPECT_EQ(rig.ended(), Status::unsupported);
      std::copy(values.begin(), values.end(), rig.output.begin() + 3);
      rig.transport.inbox->completed(rig.transport.fetched[0].token, Status::ok);
    }
    EXPECT_EQ(rig.ended(), Status::ok);
    EXPECT_EQ(rig.output[3 + kBulk - 1], 7);
    EXPECT_TRUE(rig.transport.refused.empty());
  }
}

TEST(Receiving, AReductionAfterAFetchUsesThePlace) {
  Rig rig(0, 2);
  const Plan plan = through_one_slot(1, kBulk);
  gpurdma::Run* run = rig.begin(plan);
  const void* slot = run->scratch();
  Ints values(kBulk, 7);
  rig.offer(1, 0, values);
  ASSERT_EQ(rig.reductions().size(), 1u);
  EXPECT_EQ(rig.reductions()[0].right, slot);
  EXPECT_EQ(rig.output[0], 8);
  EXPECT_EQ(rig.ended(), Status::ok);
}

}  // namespace
}  // namespace gpurdma
