// The life of a process around its reductions: sessions, spawned processes, fork, the end, and progress that others
// need.
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "tests.h"

namespace {

using check::expect;

int sum_of_ranks(MPI_Comm comm) {
  int mine, sum = -1;
  MPI_Comm_rank(comm, &mine);
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum;
}

}  // namespace

int tests::sessions() {
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
  printf("SKIP sessions: Open MPI has them from 5.0 on\n");
  return 77;
#else
  for (int round = 0; round < 2; ++round) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    check::count_calls();
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "gpurdma.test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Comm_rank(comm, &check::rank);
    MPI_Comm_size(comm, &check::size);
    expect(sum_of_ranks(comm) == check::size * (check::size - 1) / 2, "session %d: wrong sum", round);
    std::vector<float> data(100000, 1);
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, data.data(), 100000, MPI_FLOAT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(std::count(data.begin(), data.end(), (float)check::size) == 100000, "session %d: wrong sums", round);
    check::expect_calls();
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
  }
  return check::result();
#endif
}

// Two more processes run this test again; both sides reduce over the intercommunicator and over the merged one.
int tests::spawn() {
  check::start();
  MPI_Comm parent, both;
  MPI_Comm_get_parent(&parent);
  const bool child = parent != MPI_COMM_NULL;
  if (!child) {
    char name[] = "spawn", path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    char* arguments[] = {name, nullptr};
    MPI_Comm_spawn(path, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &parent, MPI_ERRCODES_IGNORE);
  }
  int others;
  MPI_Comm_remote_size(parent, &others);
  expect(sum_of_ranks(parent) == others * (others - 1) / 2, "wrong sum over the intercommunicator");
  MPI_Intercomm_merge(parent, child, &both);
  const int n = check::size + others;
  expect(sum_of_ranks(both) == n * (n - 1) / 2, "wrong sum over the merged communicator");
  std::vector<float> data(30000, 1);
  MPI_Request request;
  MPI_Iallreduce(MPI_IN_PLACE, data.data(), 30000, MPI_FLOAT, MPI_SUM, both, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(std::count(data.begin(), data.end(), (float)n) == 30000, "wrong sums over the merged communicator");
  MPI_Comm_free(&both);
  MPI_Comm_disconnect(&parent);
  expect(sum_of_ranks(MPI_COMM_WORLD) == check::size * (check::size - 1) / 2, "wrong sum once disconnected");
  return check::finish();
}

// Children that only compute and leave, one with an operation in flight, one that runs another program.
int tests::forks() {
  check::start();
  std::vector<double> data(200000, 1);
  for (int round = 0; round < 6; ++round) {
    std::fill(data.begin(), data.end(), 1);
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, data.data(), (int)data.size(), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    const pid_t child = fork();
    if (child == 0) {
      if (round % 2) execl("/bin/true", "true", (char*)nullptr);
      std::vector<char> mine(1 << 20, 1);
      _exit(mine[12345] == 1 ? 0 : 1);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int status = -1;
    waitpid(child, &status, 0);
    expect(status == 0, "round %d: the child ended with status %d", round, status);
    expect(std::count(data.begin(), data.end(), (double)check::size) == (long)data.size(), "round %d: wrong sum",
           round);
  }
  return check::finish();
}

// The last sends of one rank may still sit in queues when it enters MPI_Finalize: the others must not wait for ever.
int tests::finalize() {
  check::start();
  for (int count : {1, 3000, 1000000}) {
    std::vector<int> data(count, 1);
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, data.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    if (check::rank % 2) usleep(20000);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(std::count(data.begin(), data.end(), check::size) == count, "wrong sum of %d elements", count);
  }
  return check::finish();
}

// Rank 0 leaves a reduction early and waits in MPI_Recv for a message that is sent only when the last rank has its
// result; what rank 0 still owes the others must move on from inside of MPI_Recv. And an operation that was only
// started advances while its rank is in MPI_Recv.
int tests::progress() {
  check::start();
  const int last = check::size - 1;
  for (int round = 0; round < 30; ++round) {
    const size_t count = (size_t)1 << (round % 20);
    std::vector<float> data(count, 1);
    const bool nonblocking = round % 3 == 0;
    MPI_Request request = MPI_REQUEST_NULL;
    int token = 0;
    if (check::rank == last && round % 2) usleep(2000);
    if (nonblocking)
      MPI_Iallreduce(MPI_IN_PLACE, data.data(), (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
    else
      MPI_Allreduce(MPI_IN_PLACE, data.data(), (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (nonblocking && check::rank == last) MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (check::rank == last) MPI_Send(&round, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    if (check::rank == 0) MPI_Recv(&token, 1, MPI_INT, last, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(check::rank != 0 || token == round, "round %d: the message brought %d", round, token);
    expect(std::count(data.begin(), data.end(), (float)check::size) == (long)count, "round %d: wrong sum", round);
  }
  return check::finish();
}
