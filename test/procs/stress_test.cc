// Many operations at once, on communicators on which every rank starts them in another order, around every size at
// which messages change their way, in arenas whose lanes run out.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "coll/catalogue.h"
#include "procs/procs.h"
#include "reduce/types.h"
#include "sim/random.h"
#include "transport/arena.h"

namespace {

using gpurdma::Op;
using gpurdma::Type;
using gpurdma::sim::mix;
using gpurdma::sim::Random;

constexpr double kSeconds = 4, kTimeout = 60;
constexpr size_t kComms = 3;

size_t draw_bytes(Random& random) {
  const uint64_t threshold = random.one_of<uint64_t>({96, 8192, gpurdma::PeerArena::kLargest, 1 << 20});
  switch (random.below(8)) {
    case 0:
      return random.below(600000);
    case 1:
    case 2:
      return threshold + random.below(40) - 20;
    case 3:
      return random.below(10);
    default:
      return random.one_of<uint64_t>({96, 97, 8192, 8193, 20000, 40000}) + random.below(2);
  }
}

// One operation, alike on all ranks but for what they put in.
struct Call {
  const char* algorithm;
  size_t piece;
  int depth;
  size_t count;
  Type type;
  uint64_t salt;
  std::vector<char> in, out;
  int status = -1;

  Call(Random& random, int ranks) {
    const gpurdma::Algorithm* drawn;
    do drawn = &gpurdma::catalogue()[size_t(random.below(gpurdma::catalogue().size()))];
    while (!drawn->takes(ranks));
    algorithm = drawn->name;
    piece = random.one_of<uint64_t>({0, 64, 1000, 32768, gpurdma::PeerArena::kLargest, 1 << 20});
    depth = int(random.between(1, 8));
    type = random.percent(50) ? Type::uint8 : Type::int64;
    const size_t element = gpurdma::size_of(type), bytes = draw_bytes(random);
    if (piece != 0 && bytes / piece > 1000) piece = 32768;
    count = bytes / element;
    salt = random.bits();
    in.resize(count * element);
    out.resize(count * element, 1);
  }
  template <class T>
  T value(size_t i, int rank) const {
    return T((salt + i) % 97 * unsigned(rank + 1));
  }
  template <class T>
  void fill(int rank) {
    for (size_t i = 0; i < count; ++i) reinterpret_cast<T*>(in.data())[i] = value<T>(i, rank);
  }
  template <class T>
  bool right(int ranks) const {
    for (size_t i = 0; i < count; ++i) {
      T sum = 0;
      for (int rank = 0; rank < ranks; ++rank) sum = T(sum + value<T>(i, rank));
      if (reinterpret_cast<const T*>(out.data())[i] != sum) return false;
    }
    return true;
  }
  int start(procs::Rank& self, gpurdma_comm_t* comm) {
    type == Type::uint8 ? fill<uint8_t>(self.rank) : fill<int64_t>(self.rank);
    if (gpurdma_comm_force(comm, algorithm, piece, depth, 0) != GPURDMA_OK) return 1;
    return gpurdma_iallreduce(comm, in.data(), out.data(), count, int(Op::sum), int(type), &status);
  }
};

// Some calls on each communicator; each rank starts them in an order of its own, and is late now and then.
int round(procs::Rank& self, gpurdma_comm_t* const (&comms)[kComms], Random alike, Random own) {
  std::vector<std::unique_ptr<Call>> calls[kComms];
  size_t left = 0, started[kComms] = {};
  for (auto& of_comm : calls) {
    const uint64_t n = alike.between(1, 5);
    for (uint64_t i = 0; i < n; ++i) of_comm.push_back(std::make_unique<Call>(alike, self.size));
    left += n;
  }
  while (left > 0) {
    const size_t c = size_t(own.below(kComms));
    if (started[c] == calls[c].size()) continue;
    if (calls[c][started[c]++]->start(self, comms[c]) != GPURDMA_OK) return 2;
    --left;
    if (own.percent(10)) usleep(unsigned(own.below(2000)));
    for (uint64_t polls = own.below(50); polls > 0; --polls) gpurdma_progress(self.runtime);
  }
  for (const auto& of_comm : calls) {
    for (const auto& call : of_comm) {
      while (call->status == -1)
        if (gpurdma_progress(self.runtime) == 0) usleep(0);
      if (call->status != GPURDMA_OK) return 3;
      if (call->type == Type::uint8 ? !call->right<uint8_t>(self.size) : !call->right<int64_t>(self.size)) {
        std::fprintf(stderr, "wrong: %s, piece %zu, depth %d, %zu x %s\n", call->algorithm, call->piece, call->depth,
                     call->count, gpurdma::name_of(call->type));
        return 4;
      }
    }
  }
  return 0;
}

void stress(bool single_copy) {
  const auto body = [single_copy](procs::Rank& self) {
    gpurdma_settings_t settings;
    gpurdma_settings_default(&settings);
    settings.shared_memory = gpurdma::Arena::kLeast;
    settings.single_copy = single_copy;
    self.open(settings);
    gpurdma_comm_t* comms[kComms] = {self.comm};
    for (size_t i = 1; i < kComms; ++i) comms[i] = self.another_comm(i - 1);
    const auto begin = std::chrono::steady_clock::now();
    for (uint64_t n = 0;; ++n) {
      if (const int bad = round(self, comms, Random(n), Random(mix(n) + uint64_t(self.rank)))) return bad;
      // Whether to go on is decided by rank 0.
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
      const int64_t in = self.rank == 0 && passed.count() > kSeconds;
      int64_t out = 0;
      if (gpurdma_comm_force(self.comm, "auto", 0, 0, 0) != GPURDMA_OK) return 5;
      if (gpurdma_allreduce(self.comm, &in, &out, 1, int(Op::sum), int(Type::int64)) != GPURDMA_OK) return 6;
      if (out == 0) continue;
      if (self.rank == 0) std::printf("%llu rounds\n", static_cast<unsigned long long>(n + 1));
      break;
    }
    self.barrier();
    for (size_t i = 1; i < kComms; ++i) gpurdma_comm_destroy(comms[i]);
    self.close();
    return 0;
  };
  EXPECT_EQ(procs::run(4, kTimeout, body, false, kComms - 1), 0);
}

TEST(Stress, WithSingleCopy) { stress(true); }
TEST(Stress, WithoutSingleCopy) { stress(false); }

}  // namespace
