#include "test/bench/mpi/measure.h"

#include <string.h>

#include <algorithm>

namespace bench {

namespace {

double now_us() { return MPI_Wtime() * 1e6; }

// By MPI_Reduce and MPI_Bcast, which gpurdma leaves alone: what is measured must not take part in measuring.
double slowest(double mine) {
  double most = 0;
  MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Bcast(&most, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return most;
}

}  // namespace

double block_us(const Case& c, MPI_Comm comm, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now_us();
  for (int i = 0; i < calls; ++i) MPI_Allreduce(c.in, c.out, c.count, c.type, c.op, comm);
  return slowest((now_us() - start) / calls);
}

double copy_us(size_t bytes) {
  std::vector<char> from(bytes, 1), to(bytes, 2);
  const int calls = (int)std::max<size_t>(1, std::min<size_t>(2000, (size_t(16) << 20) / (bytes + 1)));
  std::vector<double> rounds;
  for (int round = 0; round < 7; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now_us();
    for (int i = 0; i < calls; ++i) {
      memcpy(to.data(), from.data(), bytes);
      __asm__ volatile("" : : "r"(to.data()) : "memory");  // the copy may not be left out
    }
    rounds.push_back(slowest((now_us() - start) / calls));
  }
  return median(rounds);
}

double latency_us() {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size < 2) return 0;
  std::vector<double> rounds;
  const int trips = 2000;
  for (int round = 0; round < 7; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now_us();
    double token = 0;
    for (int i = 0; i < trips && rank < 2; ++i) {
      if (rank == 0) MPI_Send(&token, 1, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);
      MPI_Recv(&token, 1, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank == 1) MPI_Send(&token, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
    }
    rounds.push_back(slowest(rank < 2 ? (now_us() - start) / trips / 2 : 0));
  }
  return median(rounds);
}

double median(std::vector<double> values) { return quantile(values, 0.5); }

double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  const double place = part * (values.size() - 1);
  const size_t below = (size_t)place, above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - below) * (values[above] - values[below]);
}

}  // namespace bench
