// What the MPI benchmark measures: one block of calls, and the machine's own limits. All ranks call each function; the
// answers are equal on all ranks.
#pragma once
#include <mpi.h>

#include <vector>

namespace bench {

struct Case {
  MPI_Datatype type;
  MPI_Op op;
  int count;
  const void* in;
  void* out;
};

// Mean time of one MPI_Allreduce among `calls`, in us, by the slowest rank.
double block_us(const Case& c, MPI_Comm comm, int calls);

// The time to copy `bytes` with all ranks copying at once, in us: the median of several by the slowest rank.
double copy_us(size_t bytes);

// One-way time of an 8-byte message between ranks 0 and 1, in us: half a round trip.
double latency_us();

double median(std::vector<double> values);
// The value below which `part` of them lie, 0 to 1.
double quantile(std::vector<double> values, double part);

}  // namespace bench
