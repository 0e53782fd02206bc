// Many nonblocking and persistent operations in flight on several communicators, beside blocking and point-to-point
// ones. MPI lets ranks start operations of different communicators in any order, and persistent ones in any order at
// all; here every rank draws its own order, and completes in random order by random means. Buffers are slices of more
// allocations than any small cache holds, with fresh values each round.
//
//   flight [--seed N] [--rounds N]
#include "check.h"
#include "tests.h"

namespace {

using check::expect;
using check::Random;

constexpr size_t kAllocations = 20, kAllocationBytes = 1 << 18;

// One reduction: uint64 sums of numbers that every rank can compute for every other.
struct Operation {
  MPI_Comm comm;
  int comm_index;
  uint64_t stream;  // what the values are drawn from, equal on all ranks of the communicator
  size_t count;
  bool persistent, in_place;
  uint64_t *in, *out;
  MPI_Request request = MPI_REQUEST_NULL;
};

// Hands out slices of the allocations, in turn.
class Slices {
 public:
  Slices() : memory_(kAllocations, std::vector<uint64_t>(kAllocationBytes / 8)) {}
  uint64_t* take(size_t count) {
    at_ = (at_ + 1) % kAllocations;
    uint64_t* slice = memory_[at_].data() + used_[at_];
    used_[at_] += count;
    if (used_[at_] > memory_[at_].size()) abort();  // a round takes less than there is
    return slice;
  }
  void reset() { std::fill(used_, used_ + kAllocations, 0); }

 private:
  std::vector<std::vector<uint64_t>> memory_;
  size_t used_[kAllocations] = {0}, at_ = 0;
};

uint64_t value(uint64_t stream, int world_rank, size_t i) { return check::mix(stream, world_rank) * (i + 1); }

struct Comm {
  MPI_Comm comm;
  std::vector<int> world;  // rank in it -> rank in MPI_COMM_WORLD
  uint64_t id;             // equal on its members
};

Comm describe(MPI_Comm comm, uint64_t id) {
  int n;
  MPI_Comm_size(comm, &n);
  std::vector<int> ranks(n), world(n);
  for (int i = 0; i < n; ++i) ranks[i] = i;
  MPI_Group here, all;
  MPI_Comm_group(comm, &here);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_translate_ranks(here, n, ranks.data(), all, world.data());
  MPI_Group_free(&here);
  MPI_Group_free(&all);
  return {comm, world, id};
}

void fill(Operation& o) {
  for (size_t i = 0; i < o.count; ++i) {
    (o.in_place ? o.out : o.in)[i] = value(o.stream, check::rank, i);
    if (!o.in_place) o.out[i] = ~uint64_t(0);
  }
}

const void* from(const Operation& o) { return o.in_place ? MPI_IN_PLACE : o.in; }

void start(Operation& o) {
  if (o.persistent)
    MPI_Start(&o.request);
  else
    MPI_Iallreduce(from(o), o.out, (int)o.count, MPI_UINT64_T, MPI_SUM, o.comm, &o.request);
}

void judge(const Operation& o, const Comm& c, int round, size_t index) {
  uint64_t sum = 0;
  for (int world : c.world) sum += value(o.stream, world, 0);
  size_t wrong = 0;
  while (wrong < o.count && o.out[wrong] == sum * (wrong + 1)) ++wrong;
  expect(wrong == o.count, "round %d, operation %zu (%s, %s, %zu elements, communicator %d): element %zu is wrong",
         round, index, o.persistent ? "persistent" : "nonblocking", o.in_place ? "in place" : "apart", o.count,
         o.comm_index, wrong);
}

// Completes all requests in random order, by Test, Wait, Waitany or Testsome.
void complete(std::vector<MPI_Request> requests, std::vector<Operation>& operations, Random& mine) {
  std::vector<size_t> open(requests.size());
  for (size_t i = 0; i < open.size(); ++i) open[i] = i;
  const auto done = [&](size_t i) {
    if (i < operations.size() && !operations[i].persistent) operations[i].request = MPI_REQUEST_NULL;
    open.erase(std::find(open.begin(), open.end(), i));
  };
  while (!open.empty()) {
    const size_t pick = open[mine.below(open.size())];
    std::vector<MPI_Request> some;
    for (size_t i : open) some.push_back(requests[i]);
    const std::vector<size_t> names = open;
    int flag = 0, index = 0, n = 0;
    std::vector<int> indices(some.size());
    switch (mine.below(4)) {
      case 0:
        MPI_Test(&requests[pick], &flag, MPI_STATUS_IGNORE);
        if (flag) done(pick);
        break;
      case 1:
        MPI_Wait(&requests[pick], MPI_STATUS_IGNORE);
        done(pick);
        break;
      case 2:
        MPI_Waitany((int)some.size(), some.data(), &index, MPI_STATUS_IGNORE);
        done(names[index]);
        break;
      default:
        MPI_Testsome((int)some.size(), some.data(), &n, indices.data(), MPI_STATUSES_IGNORE);
        for (int i = 0; i < n; ++i) done(names[indices[i]]);
    }
  }
}

void round(int number, const std::vector<Comm>& comms, Slices& slices) {
  Random shared(check::mix(check::seed, number)), mine(check::mix(check::seed, number, 1 + check::rank));
  slices.reset();
  std::vector<Operation> operations;
  std::vector<std::vector<size_t>> in_order(comms.size());  // the nonblocking ones of each communicator
  std::vector<size_t> free_order;                           // the persistent ones
  for (int k = 0; k < 40; ++k) {
    const size_t c = shared.below(comms.size());
    const bool persistent = shared.below(3) == 0, in_place = shared.below(2), tiny = shared.below(4) == 0;
    const size_t count = tiny ? shared.below(5) : shared.between(513, 4096) / 8;
    Operation o{comms[c].comm,
                (int)c,
                check::mix(check::seed, number * 1000 + k, comms[c].id),
                count,
                persistent,
                in_place,
                slices.take(count + 1),
                slices.take(count + 1)};
    fill(o);
    if (persistent)  // initialised in the same order everywhere, as MPI asks
      check::allreduce_init(from(o), o.out, (int)count, MPI_UINT64_T, MPI_SUM, o.comm, &o.request);
    (persistent ? free_order : in_order[c]).push_back(operations.size());
    operations.push_back(o);
  }

  for (int phase = 0; phase < 2; ++phase) {
    // Start everything: one communicator's nonblocking operations in order, all else as this rank likes.
    std::vector<size_t> turn;  // which list goes next
    for (size_t c = 0; c < comms.size(); ++c) {
      const bool now = phase == 0 ? c % 2 == 0 : c % 2 == 1;
      if (now) turn.insert(turn.end(), in_order[c].size(), c);
    }
    if (phase == 1) turn.insert(turn.end(), free_order.size(), comms.size());
    mine.shuffle(turn);
    mine.shuffle(free_order);
    std::vector<size_t> next(comms.size() + 1, 0);
    for (size_t list : turn)
      start(operations[list == comms.size() ? free_order[next[list]++] : in_order[list][next[list]++]]);
    // A blocking one among them, at the same place on all ranks.
    uint64_t one = check::rank + 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    expect(sum == (uint64_t)check::size * (check::size + 1) / 2, "round %d: the blocking one gave %llu", number,
           (unsigned long long)sum);
  }

  std::vector<MPI_Request> requests;
  for (const Operation& o : operations) requests.push_back(o.request);
  int to = (check::rank + 1) % check::size, behind = (check::rank + check::size - 1) % check::size, got = -1;
  MPI_Request p2p[2];
  MPI_Irecv(&got, 1, MPI_INT, behind, number, MPI_COMM_WORLD, &p2p[0]);
  MPI_Isend(&check::rank, 1, MPI_INT, to, number, MPI_COMM_WORLD, &p2p[1]);
  requests.push_back(p2p[0]);
  requests.push_back(p2p[1]);
  complete(requests, operations, mine);
  expect(got == behind, "round %d: the message from rank %d brought %d", number, behind, got);
  for (size_t i = 0; i < operations.size(); ++i) judge(operations[i], comms[operations[i].comm_index], number, i);

  // The persistent ones once more, with other values and in another order.
  mine.shuffle(free_order);
  for (size_t i : free_order) {
    operations[i].stream += 1;
    fill(operations[i]);
    start(operations[i]);
  }
  mine.shuffle(free_order);
  for (size_t i : free_order) {
    MPI_Wait(&operations[i].request, MPI_STATUS_IGNORE);
    judge(operations[i], comms[operations[i].comm_index], number, i);
    MPI_Request_free(&operations[i].request);
  }
}

}  // namespace

int tests::flight() {
  check::start();
  MPI_Comm dup, reversed, half, pair;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -check::rank, &reversed);
  MPI_Comm_split(MPI_COMM_WORLD, check::rank % 2, check::rank, &half);
  MPI_Comm_split(MPI_COMM_WORLD, check::rank / 2, check::rank, &pair);
  const std::vector<Comm> comms = {describe(MPI_COMM_WORLD, 1), describe(dup, 2), describe(reversed, 3),
                                   describe(half, 4 + check::rank % 2), describe(pair, 10 + check::rank / 2)};
  Slices slices;
  for (int r = 0, rounds = (int)check::number("--rounds", 50); r < rounds; ++r) round(r, comms, slices);
  for (MPI_Comm* comm : {&dup, &reversed, &half, &pair}) MPI_Comm_free(comm);
  return check::finish();
}
