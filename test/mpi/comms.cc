// Communicators of all kinds: each reduces rightly while others come and go, in any order of freeing, also freed with
// an operation in flight; and a thousand of them leave no memory behind.
#include "check.h"
#include "tests.h"

namespace {

using check::expect;
using check::Random;

// Sums over the communicator: one blocking, one nonblocking, one persistent.
void reduce(MPI_Comm comm, const char* what, int ways = 3) {
  int n, me;
  MPI_Comm_size(comm, &n);
  MPI_Comm_rank(comm, &me);
  const size_t count = 300;
  std::vector<long> in(count), out(count);
  for (int way = 0; way < ways; ++way) {
    for (size_t i = 0; i < count; ++i) in[i] = (long)(i * n + me + way), out[i] = -1;
    MPI_Request request = MPI_REQUEST_NULL;
    if (way == 0) MPI_Allreduce(in.data(), out.data(), (int)count, MPI_LONG, MPI_SUM, comm);
    if (way == 1) MPI_Iallreduce(in.data(), out.data(), (int)count, MPI_LONG, MPI_SUM, comm, &request);
    if (way == 2) {
      check::allreduce_init(in.data(), out.data(), (int)count, MPI_LONG, MPI_SUM, comm, &request);
      MPI_Start(&request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (way == 2) MPI_Request_free(&request);
    size_t i = 0;
    while (i < count && out[i] == (long)(i * n * n) + (long)n * (n - 1) / 2 + (long)n * way) ++i;
    expect(i == count, "%s of %d ranks, way %d: element %zu is %ld", what, n, way, i, i < count ? out[i] : 0);
  }
}

void reduce_blocking(MPI_Comm comm, const char* what) { reduce(comm, what, 1); }

// Sums over an intercommunicator: every rank gets the sum of the other group.
void reduce_inter(MPI_Comm comm, const char* what) {
  int n, mine, sum = -1;
  MPI_Comm_remote_size(comm, &n);
  MPI_Comm_rank(comm, &mine);
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  expect(sum == n * (n - 1) / 2, "%s: %d instead of %d", what, sum, n * (n - 1) / 2);
  MPI_Request request;
  sum = -1;
  MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(sum == n * (n - 1) / 2, "%s, nonblocking: %d instead of %d", what, sum, n * (n - 1) / 2);
}

constexpr int kMade = 8;  // by one call of make

struct Named {
  MPI_Comm comm;
  const char* what;
  int place;  // equal on all its members
};

void make(MPI_Comm parent, std::vector<Named>& list, int place) {
  int n, me;
  MPI_Comm_size(parent, &n);
  MPI_Comm_rank(parent, &me);
  const auto add = [&](MPI_Comm comm, const char* what) {
    if (comm != MPI_COMM_NULL) list.push_back({comm, what, place});
    ++place;
  };
  MPI_Comm comm;
  MPI_Comm_dup(parent, &comm), add(comm, "dup");
  MPI_Comm_split(parent, me % 2, -me, &comm), add(comm, "split, reversed");
  MPI_Comm_split(parent, me == 0 ? MPI_UNDEFINED : 1, me, &comm), add(comm, "split without rank 0");
  MPI_Comm_split_type(parent, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm), add(comm, "split by node");

  MPI_Group all, front;
  MPI_Comm_group(parent, &all);
  const int first = (n + 1) / 2;
  int range[1][3] = {{0, first - 1, 1}};
  MPI_Group_range_incl(all, 1, range, &front);
  MPI_Comm_create(parent, front, &comm), add(comm, "create");
  comm = MPI_COMM_NULL;
  if (me < first) MPI_Comm_create_group(parent, front, 7, &comm);
  add(comm, "create_group");
  MPI_Group_free(&front);
  MPI_Group_free(&all);

  MPI_Request request;
  MPI_Comm_idup(parent, &comm, &request);
  reduce_blocking(parent, "the parent during idup");  // nonblocking ones would meet Open MPI's own, in no fixed order
  MPI_Wait(&request, MPI_STATUS_IGNORE), add(comm, "idup");

  int dims[1] = {0}, periods[1] = {1};
  MPI_Dims_create(n, 1, dims);
  MPI_Cart_create(parent, 1, dims, periods, 0, &comm), add(comm, "cart");
}

void inter(MPI_Comm parent) {
  int n, me;
  MPI_Comm_size(parent, &n);
  MPI_Comm_rank(parent, &me);
  if (n < 2) return;
  MPI_Comm local, between, merged;
  const int low = (n + 1) / 2;
  MPI_Comm_split(parent, me < low, me, &local);
  MPI_Intercomm_create(local, 0, parent, me < low ? low : 0, 3, &between);
  reduce_inter(between, "intercommunicator");
  MPI_Intercomm_merge(between, me < low, &merged);
  reduce(merged, "merged intercommunicator");
  MPI_Comm_free(&local);
  reduce_inter(between, "intercommunicator after its local one was freed");
  MPI_Comm_free(&between);
  reduce(merged, "merged, the last one left");
  MPI_Comm_free(&merged);
}

// MPI lets a communicator be freed while its operations are pending; Open MPI's own nonblocking operations crash then.
void free_in_flight(size_t count, bool persistent) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<double> in(count, check::rank + 1.0), out(count, -1);
  MPI_Request request;
  if (persistent) {
    check::allreduce_init(in.data(), out.data(), (int)count, MPI_DOUBLE, MPI_SUM, comm, &request);
    MPI_Start(&request);
  } else {
    MPI_Iallreduce(in.data(), out.data(), (int)count, MPI_DOUBLE, MPI_SUM, comm, &request);
  }
  MPI_Comm_free(&comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (persistent) MPI_Request_free(&request);
  const double sum = check::size * (check::size + 1) / 2.0;
  expect(std::count(out.begin(), out.end(), sum) == (long)count,
         "communicator freed with %s operation of %zu in flight", persistent ? "a persistent" : "a nonblocking", count);
}

}  // namespace

int tests::comms() {
  check::start();
  std::vector<Named> list = {};
  make(MPI_COMM_WORLD, list, 0);
  make(list[0].comm, list, kMade);
  for (const Named& one : list) reduce(one.comm, one.what);
  reduce(MPI_COMM_SELF, "MPI_COMM_SELF");
  inter(MPI_COMM_WORLD);
  for (size_t count : {1, 1000, 300000})
    for (bool persistent : {false, true})
      if (!check::flag("--stock")) free_in_flight(count, persistent);

  // Free them in an order of the seed's, using what is left. Members of a communicator must come to its MPI_Comm_free
  // in the same order, so the order is drawn from descriptions, which all ranks know, and not from this rank's list.
  Random shared(check::seed);
  std::vector<int> order(kMade * 2);
  for (size_t i = 0; i < order.size(); ++i) order[i] = (int)i;
  shared.shuffle(order);
  for (int place : order) {
    for (Named& one : list)
      if (one.place == place) MPI_Comm_free(&one.comm);
    if (place % 3 == 0) reduce(MPI_COMM_WORLD, "MPI_COMM_WORLD between frees");
  }
  return check::finish();
}

int tests::churn() {
  check::start();
  const int rounds = (int)check::number("--rounds", 1200);
  double before = 0;
  for (int i = 0; i < rounds; ++i) {
    MPI_Comm comm, part;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_split(comm, check::rank % 2, check::rank, &part);
    if (i % 4 == 0)
      reduce(part, "a short-lived communicator");
    else if (i % 4 == 1)
      reduce(comm, "a short-lived duplicate");
    MPI_Comm_free(&comm);
    MPI_Comm_free(&part);
    if (i == rounds / 4) before = check::resident_mib();  // warm by then
  }
  const double growth = check::resident_mib() - before;
  expect(growth < 8, "%d rounds of two communicators each left %.1f MiB behind", rounds, growth);
  if (check::rank == 0) printf("note: %d communicators, memory grew by %.2f MiB\n", 2 * rounds, growth);
  return check::finish();
}
