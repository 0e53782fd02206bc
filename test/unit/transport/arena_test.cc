#include "transport/arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace gpurdma {
namespace {

// Sender and receiver in one process: the arena is mapped twice.
struct Node {
  ProcessIdentity owner = ProcessIdentity::own();
  Arena arena;
  std::vector<std::string> got;

  explicit Node(size_t bytes = Arena::kLeast) { EXPECT_EQ(arena.create(bytes, owner), Status::ok); }
  const char* join(PeerArena& peer, ProcessIdentity sender) { return peer.open(arena.name(), owner, sender); }
  int poll() {
    return arena.poll(
        [&](const RingMemory::Cell& cell, const char* data, uint64_t) { got.emplace_back(data, cell.bytes); });
  }
};

bool send(PeerArena& peer, const std::string& text) {
  char* place = peer.place(text.size());
  if (!place) return false;
  std::copy(text.begin(), text.end(), place);
  peer.commit({}, text.size());
  return true;
}

TEST(Arena, CarriesMessagesOfSeveralSenders) {
  Node node;
  PeerArena a, b;
  ASSERT_EQ(node.join(a, ProcessIdentity::own()), nullptr);
  ASSERT_EQ(node.join(b, ProcessIdentity::own()), nullptr);
  EXPECT_EQ(node.poll(), 0);
  EXPECT_TRUE(send(a, "from a"));
  EXPECT_TRUE(send(b, std::string(10000, 'b')));
  EXPECT_EQ(node.poll(), 2);
  std::sort(node.got.begin(), node.got.end());
  EXPECT_EQ(node.got, (std::vector<std::string>{std::string(10000, 'b'), "from a"}));
}

TEST(Arena, EachSenderIsLookedAtSoon) {
  Node node(Arena::kLeast);
  std::vector<PeerArena> peers(ArenaHeader::kRings);
  for (PeerArena& peer : peers) ASSERT_EQ(node.join(peer, ProcessIdentity::own()), nullptr);
  PeerArena one_more;
  EXPECT_STREQ(node.join(one_more, ProcessIdentity::own()), "all its rings are taken");
  for (PeerArena& peer : peers) EXPECT_TRUE(send(peer, "x"));
  for (int polls = 0; polls < 16; ++polls) node.poll();
  EXPECT_EQ(node.got.size(), peers.size());
}

TEST(Arena, LanesAreLentAsLongAsThereAreAnyAndGoBackWhenUnused) {
  Node node;  // the smallest arena has three
  std::vector<PeerArena> peers(4);
  for (PeerArena& peer : peers) ASSERT_EQ(node.join(peer, ProcessIdentity::own()), nullptr);
  EXPECT_TRUE(send(peers[0], std::string(150, 'a')));
  EXPECT_TRUE(send(peers[1], std::string(150, 'b')));
  EXPECT_TRUE(send(peers[2], std::string(150, 'd')));
  EXPECT_FALSE(peers[3].takes(150));
  EXPECT_TRUE(peers[3].takes(RingMemory::kHere));
  EXPECT_FALSE(peers[0].takes(PeerArena::kLargest + 1));
  peers[0].rest();
  peers[0].rest();
  EXPECT_FALSE(peers[3].takes(150)) << "what was sent there is not consumed yet";
  node.poll();
  peers[0].rest();
  EXPECT_TRUE(send(peers[3], std::string(150, 'c')));
  EXPECT_FALSE(peers[0].takes(150)) << "its own lane went to another";
  node.poll();
  EXPECT_EQ(node.got.size(), 4u);
}

TEST(Arena, RingsOfSendersThatClosedAreGivenToOthers) {
  Node node;
  for (uint32_t i = 0; i < 3 * ArenaHeader::kRings; ++i) {
    PeerArena peer;
    ASSERT_EQ(node.join(peer, ProcessIdentity::own()), nullptr) << i;
    ASSERT_TRUE(send(peer, std::string(200, 'x'))) << i;
    peer = PeerArena();
    node.arena.reclaim(0);  // not before its last message was consumed
    while (node.poll() == 0) {
    }
    node.arena.reclaim(0);
  }
  EXPECT_EQ(node.got.size(), 3 * ArenaHeader::kRings);
}

TEST(Arena, ClosingOneRingLeavesTheOthersOpen) {
  Node node;
  PeerArena a, b;
  const ProcessIdentity first = ProcessIdentity::own(), second = ProcessIdentity::own(), third = ProcessIdentity::own();
  ASSERT_EQ(node.join(a, first), nullptr);
  ASSERT_EQ(node.join(b, second), nullptr);
  EXPECT_TRUE(send(a, "x"));
  node.poll();
  EXPECT_EQ(node.arena.state_of(first.unique), RingMemory::State::open);
  b = PeerArena();
  EXPECT_EQ(node.arena.state_of(first.unique), RingMemory::State::open);
  EXPECT_EQ(node.arena.state_of(second.unique), RingMemory::State::closed);
  a.give_up();
  EXPECT_EQ(node.arena.state_of(first.unique), RingMemory::State::given_up);
  EXPECT_EQ(node.arena.state_of(third.unique), RingMemory::State::closed) << "it has none";
}

TEST(Arena, TakesBackWhatTheDeadHad) {
  Node node;
  const ProcessIdentity dead = ProcessIdentity::own();
  {
    PeerArena lingering;  // never closed as far as the arena knows: it is reclaimed before
    ASSERT_EQ(node.join(lingering, dead), nullptr);
    ASSERT_TRUE(send(lingering, std::string(200, 'x')));
    node.poll();
    node.arena.reclaim(dead.unique);
  }
  std::vector<PeerArena> peers(2);
  for (PeerArena& peer : peers) {
    ASSERT_EQ(node.join(peer, ProcessIdentity::own()), nullptr);
    EXPECT_TRUE(send(peer, std::string(200, 'y')));
  }
}

TEST(Arena, RefusesWhatIsNotTheArenaThatWasNamed) {
  Node node;
  PeerArena peer;
  ArenaName name = node.arena.name();
  EXPECT_STREQ(peer.open({-1, 0, 0}, node.owner, node.owner), "it offers no shared memory");
  name.bytes *= 2;
  EXPECT_STREQ(peer.open(name, node.owner, node.owner), "its memory cannot be mapped");
  name = node.arena.name();
  EXPECT_STREQ(peer.open(name, ProcessIdentity::own(), node.owner), "its memory has another layout");
  name.fd = 100000;
  EXPECT_STREQ(peer.open(name, node.owner, node.owner), "its memory cannot be opened");
  ProcessIdentity elsewhere = node.owner;
  ++elsewhere.pid_space;
  EXPECT_STREQ(peer.open(node.arena.name(), elsewhere, node.owner),
               "it is in another container (their process-id spaces differ)");
  EXPECT_FALSE(peer.is_open());
}

TEST(Arena, ChildrenDoNotInheritTheMapping) {
  Node node;
  PeerArena peer;
  ASSERT_EQ(node.join(peer, ProcessIdentity::own()), nullptr);
  char* const place = peer.place(8);
  const pid_t child = fork();
  if (child == 0) {
    unsigned char resident;
    void* const page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(place) & ~uintptr_t(4095));
    _exit(mincore(page, 4096, &resident) == 0 ? 1 : 0);  // ENOMEM: nothing is mapped there
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace gpurdma
