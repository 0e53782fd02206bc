// Messages beyond what an int counts: more than 2^31 bytes everywhere, and more than 2^31 elements where MPI has large
// counts. Meant for 2 ranks; needs about 10 GiB in all. And memory that is reduced and freed, again and again, goes
// back.
#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "check.h"
#include "tests.h"

namespace {

using check::expect;

// Memory that goes back at once.
class Pages {
 public:
  explicit Pages(size_t bytes) : bytes_(bytes) {
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) abort();
    madvise(data_, bytes, MADV_HUGEPAGE);  // touching small pages takes longer than reducing them
  }
  ~Pages() { munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  template <class T>
  T* as() {
    return (T*)data_;
  }

 private:
  size_t bytes_;
  void* data_;
};

// A pattern whose period divides no block, so that a block in the wrong place shows.
int8_t small(size_t i) { return int8_t(i % 251 % 60); }

template <class T, class Reduce>
void run(const char* what, size_t count, Reduce reduce) {
  Pages memory(count * sizeof(T));
  T* data = memory.as<T>();
  for (size_t i = 0; i < count; ++i) data[i] = T(small(i) + check::rank);
  const int status = reduce(data);
  const long added = (long)check::size * (check::size - 1) / 2;
  size_t i = 0;
  while (i < count && data[i] == T(small(i) * check::size + added)) ++i;
  expect(status == MPI_SUCCESS && i == count, "%s of %zu elements: status %d, element %zu is wrong", what, count,
         status, i);
}

}  // namespace

#if MPI_VERSION >= 4
namespace {

// The calls with large counts, on small ones: blocking, nonblocking, persistent.
void large_counts() {
  const MPI_Count count = 1000;
  std::vector<int> in(1000, check::rank + 1), out(1000);
  const auto right = [&] { return std::count(out.begin(), out.end(), check::size * (check::size + 1) / 2) == 1000; };
  MPI_Request request;
  MPI_Allreduce_c(in.data(), out.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect(right(), "MPI_Allreduce_c of 1,000 ints is wrong");
  std::fill(out.begin(), out.end(), 0);
  MPI_Iallreduce_c(in.data(), out.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(right(), "MPI_Iallreduce_c of 1,000 ints is wrong");
  MPI_Allreduce_init_c(in.data(), out.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int start = 0; start < 3; ++start) {
    std::fill(out.begin(), out.end(), 0);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(right(), "start %d of MPI_Allreduce_init_c of 1,000 ints is wrong", start);
  }
  MPI_Request_free(&request);
}

}  // namespace
#endif

int tests::big() {
  check::start();
  const size_t two_gib = size_t(1) << 31;
  run<int32_t>("MPI_Allreduce of int32", two_gib / 4 + 3, [](int32_t* data) {
    return MPI_Allreduce(MPI_IN_PLACE, data, (1 << 29) + 3, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
  });
  run<int8_t>("MPI_Iallreduce of int8", two_gib - 1, [](int8_t* data) {
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, data, INT32_MAX, MPI_INT8_T, MPI_SUM, MPI_COMM_WORLD, &request);
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
#if MPI_VERSION >= 4
  large_counts();
  run<int8_t>("MPI_Allreduce_c of int8", two_gib + 5, [](int8_t* data) {
    return MPI_Allreduce_c(MPI_IN_PLACE, data, (MPI_Count(1) << 31) + 5, MPI_INT8_T, MPI_SUM, MPI_COMM_WORLD);
  });
#endif
  return check::finish();
}

int tests::memory() {
  check::start();
  const size_t count = (size_t)check::number("--mib", 128) << 17;  // doubles
  double before = 0, after = 0;
  for (int round = 0; round < 8; ++round) {
    {
      Pages in(count * 8), out(count * 8);
      for (size_t i = 0; i < count; i += 64) in.as<double>()[i] = check::rank + (double)i;
      MPI_Allreduce(in.as<double>(), out.as<double>(), (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      const size_t i = (count - 1) / 64 * 64;
      const double want = (double)check::size * i + check::size * (check::size - 1) / 2.0;
      expect(out.as<double>()[i] == want, "round %d: the last element is %g instead of %g", round, out.as<double>()[i],
             want);
    }
    (round < 2 ? before : after) = check::resident_mib();
  }
  expect(after - before < 16, "memory in use grew by %.1f MiB over six rounds of %zu MiB", after - before, count >> 16);
  expect(after < 300, "%.1f MiB are still in use with all buffers freed", after);
  if (check::rank == 0)
    printf("note: %.1f MiB in use with all buffers freed, %+.1f since round 2\n", after, after - before);
  return check::finish();
}
