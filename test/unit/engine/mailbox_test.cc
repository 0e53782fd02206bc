#include "engine/mailbox.h"

#include "test/unit/engine/rig.h"

namespace gpurdma {
namespace {

struct Box {
  Memory memory{SIZE_MAX};
  Mailbox mailbox{memory};

  void keep(uint32_t comm, uint64_t operation, uint32_t position, int32_t value) {
    const Header header{operation, comm, 1, position, Header::Kind::data};
    mailbox.keep(mailbox.copy(header, {&value, 4, nullptr}));
  }
  // Positions and values of what was kept, in order.
  Ints drain(Parked* parked) {
    Ints seen;
    while (parked) {
      Parked* next = parked->next;
      seen.push_back(int32_t(parked->header.position));
      seen.push_back(*static_cast<const int32_t*>(parked->payload().data));
      mailbox.free(parked);
      parked = next;
    }
    return seen;
  }
};

TEST(Mailbox, GivesMessagesInOrderOfArrival) {
  Box box;
  box.keep(1, 5, 2, 20);
  box.keep(1, 6, 0, 99);
  box.keep(2, 5, 0, 98);
  box.keep(1, 5, 0, 21);
  EXPECT_EQ(box.drain(box.mailbox.collect(1, 5)), (Ints{2, 20, 0, 21}));
  EXPECT_EQ(box.mailbox.collect(1, 5), nullptr);
  EXPECT_EQ(box.drain(box.mailbox.collect(2)), (Ints{0, 98}));
  EXPECT_EQ(box.drain(box.mailbox.collect(1)), (Ints{0, 99}));
  EXPECT_EQ(box.memory.in_use(), 0u);
}

TEST(Mailbox, OffersAreKeptWithoutACopy) {
  Box box;
  int offer = 0;
  Parked* parked = box.mailbox.copy({0, 0, 1, 0, Header::Kind::data}, {nullptr, size_t(1) << 40, &offer});
  ASSERT_NE(parked, nullptr);
  EXPECT_EQ(parked->payload().offer, &offer);
  EXPECT_EQ(parked->payload().data, nullptr);
  EXPECT_EQ(parked->payload().bytes, size_t(1) << 40);
  box.mailbox.free(parked);
  EXPECT_EQ(box.memory.in_use(), 0u);
}

TEST(Mailbox, FindsRunsThatShareABucket) {
  Box box;
  ScriptedTransport transport;
  NoGpus none(transport, box.mailbox, box.memory);
  const Plan plan = plan_of(0, 1, [](Plan&) {});
  Communicator comm(7, 0, 1, "", {});
  std::deque<gpurdma::Run> runs;
  for (uint32_t i = 0; i < 5; ++i) {
    runs.emplace_back(i, none.means);
    const Status status = runs.back().bind(plan, comm, Number::call(CallClass::blocking, i * 512), {}, nullptr);
    ASSERT_EQ(status, Status::ok);
    box.mailbox.add(runs.back());
  }
  for (gpurdma::Run& run : runs) EXPECT_EQ(box.mailbox.find(7, run.number().bits()), &run);
  EXPECT_EQ(box.mailbox.find(8, runs[0].number().bits()), nullptr);
  box.mailbox.remove(runs[2]);
  EXPECT_EQ(box.mailbox.find(7, runs[2].number().bits()), nullptr);
  EXPECT_EQ(box.mailbox.find(7, runs[3].number().bits()), &runs[3]);
}

TEST(Mailbox, TellsCommunicatorsApart) {
  Box box;
  ScriptedTransport transport;
  NoGpus none(transport, box.mailbox, box.memory);
  const Plan plan = plan_of(0, 1, [](Plan&) {});
  std::deque<Communicator> comms;
  std::deque<gpurdma::Run> runs;
  for (uint32_t i = 0; i < 600; ++i) {  // more than there are buckets
    comms.emplace_back(i, 0, 1, "", CommHooks());
    runs.emplace_back(i, none.means);
    ASSERT_EQ(runs.back().bind(plan, comms.back(), Number(), {}, nullptr), Status::ok);
    box.mailbox.add(runs.back());
  }
  for (uint32_t i = 0; i < 600; ++i) EXPECT_EQ(box.mailbox.find(i, Number().bits()), &runs[i]);
}

}  // namespace
}  // namespace gpurdma
