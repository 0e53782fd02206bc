// MPI_THREAD_MULTIPLE: threads reduce on communicators of their own, blocking and nonblocking, while one thread makes
// and frees communicators (which reduces inside of progress) and one sends messages; and one thread completes what
// another started.
//
//   threads [--seed N] [--rounds N]
#include <atomic>
#include <thread>

#include "check.h"
#include "tests.h"

namespace {

constexpr int kReducers = 2;
std::atomic<long> wrong{0};

void reduce(MPI_Comm comm, int thread, int rounds) {
  check::Random random(check::mix(check::seed, thread));  // equal on all ranks
  for (int r = 0; r < rounds; ++r) {
    const size_t count = random.below(8) == 0 ? 20000 : random.between(1, 600);
    std::vector<double> in(count), out(count, -1);
    for (size_t i = 0; i < count; ++i) in[i] = (double)(check::rank + 1) * (i + r);
    MPI_Request request = MPI_REQUEST_NULL;
    if (random.below(2))
      MPI_Allreduce(in.data(), out.data(), (int)count, MPI_DOUBLE, MPI_SUM, comm);
    else
      MPI_Iallreduce(in.data(), out.data(), (int)count, MPI_DOUBLE, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    const double ranks = check::size * (check::size + 1) / 2.0;
    for (size_t i = 0; i < count; ++i) wrong += out[i] != ranks * (i + r);
  }
}

// One communicator at a time: two that are made from the same one at once (idup, then dup before the idup is completed)
// let Open MPI's own reductions pass each other, and stock 4.1 hangs in 7 of 40 runs.
void create(MPI_Comm comm, int rounds) {
  for (int r = 0; r < rounds; ++r) {
    MPI_Comm one, two;
    MPI_Request request;
    MPI_Comm_idup(comm, &one, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_dup(comm, &two);
    int mine = 1, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, one);
    wrong += sum != check::size;
    MPI_Comm_free(&one);
    MPI_Comm_free(&two);
  }
}

void talk(MPI_Comm comm, int rounds) {
  const int to = (check::rank + 1) % check::size, behind = (check::rank + check::size - 1) % check::size;
  std::vector<int> sent(3000, check::rank), got(3000, -1);
  for (int r = 0; r < rounds; ++r) {
    MPI_Sendrecv(sent.data(), 3000, MPI_INT, to, r, got.data(), 3000, MPI_INT, behind, r, comm, MPI_STATUS_IGNORE);
    wrong += got[0] != behind || got[2999] != behind;
  }
}

}  // namespace

int tests::threads() {
  check::start(MPI_THREAD_MULTIPLE);
  const int rounds = (int)check::number("--rounds", 200);
  MPI_Comm comms[kReducers + 2];
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<std::thread> running;
  for (int t = 0; t < kReducers; ++t) running.emplace_back(reduce, comms[t], t, rounds);
  running.emplace_back(create, comms[kReducers], rounds / 10);
  running.emplace_back(talk, comms[kReducers + 1], rounds);
  for (std::thread& one : running) one.join();

  // Started here, completed by another thread.
  std::vector<float> in(50000, 1), out(50000, 0);
  MPI_Request request;
  MPI_Iallreduce(in.data(), out.data(), 50000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  std::thread([&request] { MPI_Wait(&request, MPI_STATUS_IGNORE); }).join();
  check::expect(std::count(out.begin(), out.end(), (float)check::size) == 50000, "completed by another thread");
  check::expect(wrong == 0, "%ld wrong answers among the threads", wrong.load());
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  return check::finish();
}
