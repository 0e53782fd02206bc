// A rank is killed in the middle: every other rank gets an MPI error within --seconds, and none hangs. A rank comes
// late: the others wait for it, or get an error where coll_gpurdma_deadline is shorter.
//
//   fault [--seconds N] [--count N] [--nonblocking]
//   late [--seconds N] [--error]     rank 0 comes N seconds late; --error: that is past the deadline
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "tests.h"

namespace {

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

}  // namespace

int tests::fault() {
  check::start();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int victim = check::size - 1, count = (int)check::number("--count", 100000);
  const double limit_s = (double)check::number("--seconds", 30);
  std::vector<double> data(count, 1);
  int status = MPI_SUCCESS, round = 0;
  double died = 0;
  alarm((unsigned)limit_s + 10);  // a hang ends here, by SIGALRM
  for (; status == MPI_SUCCESS && round < 1000; ++round) {
    if (round == 20 && check::rank == victim) raise(SIGKILL);
    if (round == 20) died = now();
    MPI_Request request = MPI_REQUEST_NULL;
    if (check::flag("--nonblocking")) {
      status = MPI_Iallreduce(MPI_IN_PLACE, data.data(), count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &request);
      if (status == MPI_SUCCESS) status = MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      status = MPI_Allreduce(MPI_IN_PLACE, data.data(), count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
  }
  const double took_s = now() - died;
  check::expect(status != MPI_SUCCESS, "no error in %d rounds after rank %d died", round - 20, victim);
  check::expect(took_s < limit_s, "the error came after %.1f s", took_s);
  const double before = now();
  const int next = MPI_Allreduce(MPI_IN_PLACE, data.data(), count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  check::expect(next != MPI_SUCCESS, "a call after the failure succeeded");
  check::expect(now() - before < 5, "a call after the failure took %.1f s", now() - before);
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0, kind = 0;
  MPI_Error_string(status, text, &length);
  MPI_Error_class(status, &kind);
  // MPI_Finalize would wait for the dead rank, so this is the end; the driver counts these lines.
  if (check::failures == 0)
    printf("ok fault: rank %d of %d got class %d after %.2f s: %s\n", check::rank, check::size, kind, took_s, text);
  fflush(stdout);
  _exit(check::failures == 0 ? 0 : 1);
}

int tests::late() {
  check::start();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int one = 1, sum = 0;
  check::expect(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS, "the first call failed");
  const double seconds = (double)check::number("--seconds", 3);
  if (check::rank == 0) usleep((useconds_t)(seconds * 1e6));
  const double before = now();
  const int status = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (check::flag("--error")) {
    // The late one may find all that it needs, sent before the others gave up; its next call fails.
    const bool found_all = check::rank == 0 && status == MPI_SUCCESS && sum == check::size;
    check::expect(status != MPI_SUCCESS || found_all, "no error, though rank 0 came after the deadline");
    const int next = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check::expect(next != MPI_SUCCESS, "a call after the deadline succeeded");
    check::expect(now() - before < seconds, "the error came after %.1f s", now() - before);
  } else {
    check::expect(status == MPI_SUCCESS && sum == check::size, "status %d, sum %d", status, sum);
  }
  return check::finish();
}
