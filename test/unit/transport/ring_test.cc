#include "transport/ring.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace gpurdma {
namespace {

constexpr size_t kLane = 4096;  // bytes; see also OfAnyLengths

struct Ends {
  std::unique_ptr<RingMemory> memory = std::make_unique<RingMemory>();
  std::unique_ptr<char[]> arena{new char[2 * kLane]};
  RingSender sender{memory.get()};
  RingReceiver receiver{memory.get(), arena.get(), 2 * kLane};

  Lane lane() { return {arena.get() + kLane, kLane, kLane}; }
  bool send(uint32_t position, const std::string& text) {
    char* place = sender.place(text.size());
    if (!place) return false;
    std::copy(text.begin(), text.end(), place);
    sender.commit({7, 8, 9, position, Header::Kind::data}, text.size());
    return true;
  }
  std::vector<std::pair<uint32_t, std::string>> receive(int most = 1000) {
    std::vector<std::pair<uint32_t, std::string>> got;
    receiver.poll(most, [&](const RingMemory::Cell& cell, const char* data) {
      const Header& header = cell.header;
      EXPECT_EQ(header.operation, 7u);
      EXPECT_EQ(header.comm, 8u);
      EXPECT_EQ(header.source, 9u);
      got.emplace_back(header.position, std::string(data, cell.bytes));
    });
    return got;
  }
};

TEST(Ring, CarriesSmallMessagesInTheirCells) {
  Ends ends;
  EXPECT_TRUE(ends.receive().empty());
  EXPECT_TRUE(ends.send(1, ""));
  EXPECT_TRUE(ends.send(2, std::string(RingMemory::kHere, 'x')));
  EXPECT_FALSE(ends.send(3, std::string(RingMemory::kHere + 1, 'x'))) << "no lane was lent";
  const auto got = ends.receive();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].second, "");
  EXPECT_EQ(got[1].second, std::string(RingMemory::kHere, 'x'));
}

TEST(Ring, HasRoomForItsCellsAndAgainOnceTheyAreConsumed) {
  Ends ends;
  constexpr uint32_t kCellsForAll = RingMemory::kCells - RingMemory::kKept;
  for (uint32_t i = 0; i < kCellsForAll; ++i) ASSERT_TRUE(ends.send(i, "a"));
  EXPECT_FALSE(ends.send(99, "a"));
  EXPECT_FALSE(ends.sender.drained());
  EXPECT_EQ(ends.receive(1).size(), 1u);
  EXPECT_TRUE(ends.send(99, "b"));
  EXPECT_FALSE(ends.send(100, "a"));
  EXPECT_EQ(ends.receive().size(), size_t(kCellsForAll));
  EXPECT_TRUE(ends.sender.drained());
}

TEST(Ring, KeepsCellsForWhatWasTaken) {
  Ends ends;
  const Header header{7, 8, 9, 1, Header::Kind::data};
  while (ends.send(1, "a")) {
  }
  EXPECT_FALSE(ends.sender.send(header, 100000, RingMemory::Form::offer, {1, 2}));
  for (uint32_t i = 0; i < RingMemory::kKept; ++i)
    EXPECT_TRUE(ends.sender.send(header, 0, RingMemory::Form::taken, {0, i}));
  EXPECT_FALSE(ends.sender.send(header, 0, RingMemory::Form::taken, {0, 9}));
  int taken = 0;
  EXPECT_EQ(ends.receiver.poll(
                100, [&](const RingMemory::Cell& cell, const char*) { taken += cell.form == RingMemory::Form::taken; }),
            int(RingMemory::kCells));
  EXPECT_EQ(taken, int(RingMemory::kKept));
}

TEST(Ring, APayloadStaysWhereItIsUntilItsMessageIsConsumed) {
  Ends ends;
  ends.sender.lend(ends.lane());
  const std::string first(1500, 'a'), second(1500, 'b'), third(1400, 'c');
  ASSERT_TRUE(ends.send(1, first));
  ASSERT_TRUE(ends.send(2, second));
  EXPECT_FALSE(ends.send(3, third)) << "it would not fit in one piece";
  EXPECT_EQ(ends.receive(1)[0].second, first);
  ASSERT_TRUE(ends.send(3, third));
  EXPECT_FALSE(ends.send(4, std::string(1100, 'x')));
  const auto got = ends.receive();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].second, second);
  EXPECT_EQ(got[1].second, third);
  EXPECT_FALSE(ends.send(5, std::string(kLane + 1, 'x'))) << "larger than the lane";
  EXPECT_TRUE(ends.send(6, std::string(kLane / 2, 'd'))) << "once all is consumed there is room for half a lane";
}

TEST(Ring, ALaneIsReturnedAndLentAgain) {
  Ends ends;
  ends.sender.lend(ends.lane());
  ASSERT_TRUE(ends.send(1, std::string(3000, 'a')));
  ASSERT_EQ(ends.receive().size(), 1u);
  ASSERT_TRUE(ends.sender.drained());
  ends.sender.lend({});
  EXPECT_FALSE(ends.send(2, std::string(3000, 'b')));
  ASSERT_TRUE(ends.send(3, "small"));
  ends.receive();
  ends.sender.lend(ends.lane());
  for (uint32_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(ends.send(i, std::string(3000, char('a' + i % 26))));
    ASSERT_EQ(ends.receive()[0].second, std::string(3000, char('a' + i % 26)));
  }
}

TEST(Ring, NumbersBeginAgain) {
  Ends ends;
  for (int lap = 0; lap < 3000; ++lap)
    for (uint32_t i = 0; i < RingMemory::kCells; ++i) {
      ASSERT_TRUE(ends.send(i, "text"));
      ASSERT_EQ(ends.receive()[0].first, i);
    }
}

TEST(Ring, DoesNotBelieveAPayloadOutsideOfTheArena) {
  Ends ends;
  ends.sender.lend(ends.lane());
  ASSERT_TRUE(ends.send(1, std::string(100, 'a')));
  ends.memory->cells[0].at = UINT64_MAX - 8;
  EXPECT_TRUE(ends.receive().empty());
  ASSERT_TRUE(ends.send(2, std::string(100, 'b')));
  ends.memory->cells[1].bytes = UINT32_MAX;
  EXPECT_TRUE(ends.receive().empty());
  ASSERT_TRUE(ends.send(3, "c"));
  EXPECT_EQ(ends.receive()[0].second, "c") << "the messages behind it still come";
}

// Random lengths, and a receiver that lags behind by a random number of messages: nothing is overwritten.
TEST(Ring, OfAnyLengths) {
  Ends ends;
  std::vector<char> room(200000);
  ends.receiver = RingReceiver(ends.memory.get(), room.data(), room.size());
  ends.sender.lend({room.data() + 64, 64, room.size() - 64});
  std::mt19937 random(1);
  uint32_t sent = 0, received = 0, refused = 0;
  const auto size_of = [](uint32_t i) { return size_t(i * 2654435761u % (i % 5 == 0 ? 60000 : i % 2 ? 3000 : 40)); };
  while (received < 20000) {
    for (uint32_t n = random() % 40; n > 0; --n) {
      if (ends.send(sent, std::string(size_of(sent), char(sent))))
        ++sent;
      else
        ++refused;
    }
    for (const auto& [position, text] : ends.receive(int(random() % 40))) {
      ASSERT_EQ(position, received);
      ASSERT_EQ(text, std::string(size_of(received), char(received)));
      ++received;
    }
  }
  EXPECT_GT(refused, 100u);
}

// Two threads; each byte of a payload follows from its message's number. Also what a race detector looks at.
TEST(Ring, SenderAndReceiverAtOnce) {
  constexpr uint32_t kMessages = 100000;
  Ends ends;
  ends.sender.lend(ends.lane());
  const auto size_of = [](uint32_t i) { return i % 3 == 0 ? i % 33 : i * 7919 % 1800; };
  std::thread sender([&] {
    for (uint32_t i = 0; i < kMessages; ++i) {
      const size_t bytes = size_of(i);
      char* place;
      while (!(place = ends.sender.place(bytes))) sched_yield();
      std::fill(place, place + bytes, char(i));
      ends.sender.commit({0, 0, 0, i, Header::Kind::data}, bytes);
    }
  });
  uint32_t next = 0, wrong = 0;
  while (next < kMessages) {
    const int n = ends.receiver.poll(5, [&](const RingMemory::Cell& cell, const char* data) {
      const size_t bytes = cell.bytes;
      wrong += cell.header.position != next || bytes != size_of(next) ||
               !std::all_of(data, data + bytes, [&](char c) { return c == char(next); });
      ++next;
    });
    if (n == 0) sched_yield();
  }
  sender.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace gpurdma
