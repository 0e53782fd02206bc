// The host's side of greetings: Hellos travel between two ranks once both have asked for them.
#include <algorithm>

#include "test/sim/world.h"

namespace gpurdma::sim {

void* World::exchange(void* opaque, int place, const void* mine, size_t bytes, void* theirs, size_t capacity) {
  const Member& member = *static_cast<Member*>(opaque);
  World& world = *member.world;
  const std::vector<int>& members = world.case_.comms[size_t(member.comm)];
  const int rank = members[size_t(member.place)], peer = members[size_t(place)];
  const char* at = static_cast<const char*>(mine);
  world.exchanges_.push_back(std::make_unique<Exchange>(
      Exchange{&world, rank, std::vector<char>(at, at + bytes), static_cast<char*>(theirs)}));
  Exchange* own = world.exchanges_.back().get();
  const auto half = world.half_done_.find({member.comm, place, member.place});
  if (half == world.half_done_.end()) {
    if (!world.half_done_.insert({{member.comm, member.place, place}, own}).second)
      world.fail("two greetings of one peer");
  } else {
    Exchange* other = half->second;
    world.half_done_.erase(half);
    if (bytes > capacity) world.fail("a greeting that does not fit");
    const auto bring = [&world](Exchange* to, Exchange* from) {
      world.network_.later(to->rank, world.network_.delay(), Where::outside, [to, from] {
        if (to->ended || to->result != 0) return;
        std::copy(from->mine.begin(), from->mine.end(), to->theirs);
        to->received = from->mine.size();
        to->result = 1;
      });
    };
    bring(own, other);
    bring(other, own);
  }
  // The host notices the death of a rank some time.
  if (world.case_.fault == Fault::death && (peer == world.case_.victim || rank == world.case_.victim))
    world.network_.later(rank, 6000, Where::outside, [own] {
      if (own->result == 0) own->result = -1;
    });
  return own;
}

int World::exchange_test(void* exchange, size_t* received) {
  *received = static_cast<Exchange*>(exchange)->received;
  return static_cast<Exchange*>(exchange)->result;
}

void World::exchange_end(void* exchange) { static_cast<Exchange*>(exchange)->ended = true; }

}  // namespace gpurdma::sim
