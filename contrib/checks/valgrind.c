/* What valgrind watches: allreduce in its three forms, small and large, on communicators that come and go. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#if MPI_VERSION < 4
#include <mpi-ext.h>
#define MPI_Allreduce_init MPIX_Allreduce_init
#endif

enum { LARGEST = 100000 };

static int rank, size, wrong;

static void fill(double *values, int count) {
  for (int i = 0; i < count; ++i) values[i] = rank + i;
}

static void check(const double *values, int count) {
  for (int i = 0; i < count; ++i) wrong += values[i] != size * (size - 1) / 2 + (double)size * i;
}

static void all_forms(MPI_Comm comm, double *in, double *out, int count) {
  fill(in, count);
  MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, comm);
  check(out, count);

  fill(out, count);
  MPI_Allreduce(MPI_IN_PLACE, out, count, MPI_DOUBLE, MPI_SUM, comm);
  check(out, count);

  MPI_Request request;
  MPI_Iallreduce(in, out, count, MPI_DOUBLE, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(out, count);

  MPI_Allreduce_init(in, out, count, MPI_DOUBLE, MPI_SUM, comm, MPI_INFO_NULL, &request);
  for (int i = 0; i < 2; ++i) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(out, count);
  }
  MPI_Request_free(&request);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double *in = malloc(LARGEST * sizeof *in), *out = malloc(LARGEST * sizeof *out);
  const int counts[] = {0, 1, 7, 1000, LARGEST};
  for (int round = 0; round < 3; ++round) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 5; ++i) all_forms(comm, in, out, counts[i]);
    MPI_Comm_free(&comm);
  }
  free(in);
  free(out);
  if (rank == 0 && !wrong) printf("done\n");
  MPI_Finalize();
  return wrong != 0;
}
