// What every MPI test uses: arguments, random numbers, failure lines, guarded buffers, and a start and an end.
//
// A failing check prints one line with what is needed to repeat it; the exit status of every rank says whether one of
// its checks failed. Nothing here calls a collective: what is under test must not report on itself. With
// GPURDMA_TEST_ACTIVE=1 in the environment finish() fails when gpurdma ran no operation on this rank, with 0 when it
// ran one; without that variable the tests also run where there is no gpurdma.
#pragma once
#include <mpi.h>
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#endif
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <string>
#include <vector>

namespace check {

inline const char* program = "?";
inline int rank = 0, size = 1;
inline uint64_t seed = 1;
inline long checks = 0, failures = 0;
inline std::vector<std::string> arguments;

// ---- arguments: --name value, --flag ----

inline bool flag(const char* name) { return std::find(arguments.begin(), arguments.end(), name) != arguments.end(); }

inline std::string text(const char* name, const char* otherwise = "") {
  const auto at = std::find(arguments.begin(), arguments.end(), name);
  return at != arguments.end() && at + 1 != arguments.end() ? at[1] : otherwise;
}

inline long number(const char* name, long otherwise) {
  const std::string value = text(name);
  return value.empty() ? otherwise : atol(value.c_str());
}

// ---- checks ----

// Prints one line for a check that failed; after 20 of them a rank only counts.
__attribute__((format(printf, 1, 2))) inline void fail(const char* format, ...) {
  if (++failures > 20) return;
  char line[1000];
  va_list list;
  va_start(list, format);
  vsnprintf(line, sizeof line, format, list);
  va_end(list);
  printf("FAIL %s, rank %d of %d, seed %llu: %s%s\n", program, rank, size, (unsigned long long)seed, line,
         failures == 20 ? " (more follow, not shown)" : "");
  fflush(stdout);
}

// expect(what must hold, "what it means when it does not", ...)
#define CHECK_FORMAT __attribute__((format(printf, 2, 3)))
CHECK_FORMAT inline bool expect(bool holds, const char* format, ...) {
  ++checks;
  if (holds) return true;
  char line[800];
  va_list list;
  va_start(list, format);
  vsnprintf(line, sizeof line, format, list);
  va_end(list);
  fail("%s", line);
  return false;
}

// ---- random numbers: the same stream for the same seed on every rank and machine (splitmix64) ----

class Random {
 public:
  explicit Random(uint64_t start) : state_(start) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  size_t below(size_t limit) { return next() % limit; }
  size_t between(size_t low, size_t high) { return low + below(high - low + 1); }
  template <class T>
  void shuffle(std::vector<T>& list) {
    for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[below(i)]);
  }

 private:
  uint64_t state_;
};

// One number from several, for streams that must differ by rank, round, ...
inline uint64_t mix(uint64_t a, uint64_t b, uint64_t c = 0) {
  return Random(Random(Random(a).next() + b).next() + c).next();
}

inline uint64_t hash(const void* data, size_t bytes) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (size_t i = 0; i < bytes; ++i) h = (h ^ ((const unsigned char*)data)[i]) * 0x100000001b3ull;
  return h;
}

// ---- buffers with guard bytes before and behind ----

class Guarded {
 public:
  // offset: bytes beyond the allocator's alignment at which the data begins.
  explicit Guarded(size_t bytes, size_t offset = 0) : bytes_(bytes), front_(kGuard + offset) {
    memory_.assign(front_ + bytes + kGuard, kPattern);
  }
  unsigned char* data() { return memory_.data() + front_; }
  size_t bytes() const { return bytes_; }
  bool intact() const {
    const auto same = [](unsigned char c) { return c == kPattern; };
    return std::all_of(memory_.begin(), memory_.begin() + front_, same) &&
           std::all_of(memory_.end() - kGuard, memory_.end(), same);
  }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr unsigned char kPattern = 0xa5;
  size_t bytes_, front_;
  std::vector<unsigned char> memory_;
};

// ---- MPI, under one name for all releases ----

inline int allreduce_init(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                          MPI_Request* request) {
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
  return MPIX_Allreduce_init(in, out, count, type, op, comm, MPI_INFO_NULL, request);
#else
  return MPI_Allreduce_init(in, out, count, type, op, comm, MPI_INFO_NULL, request);
#endif
}

// Resident memory of this process in MiB.
inline double resident_mib() {
  long pages = 0, resident = 0;
  if (FILE* f = fopen("/proc/self/statm", "r")) {
    if (fscanf(f, "%ld %ld", &pages, &resident) != 2) resident = 0;
    fclose(f);
  }
  return resident * 4096.0 / (1 << 20);
}

// ---- gpurdma's counters, through MPI_T ----

// The counters whose names begin with coll_gpurdma_ and `beginning` and end with `ending`, added up from here on.
class Counters {
 public:
  explicit Counters(const char* ending, const std::string& beginning = "") {
    const std::string front = "coll_gpurdma_" + beginning;
    int provided, variables;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return;
    ready_ = MPI_T_pvar_session_create(&session_) == MPI_SUCCESS;
    MPI_T_pvar_get_num(&variables);
    for (int i = 0; ready_ && i < variables; ++i) {
      char name[256] = "", help[16];
      int name_length = sizeof name, help_length = sizeof help, verbosity, kind, bind, readonly, continuous, atomic;
      MPI_Datatype type;
      MPI_T_enum values;
      if (MPI_T_pvar_get_info(i, name, &name_length, &verbosity, &kind, &type, &values, help, &help_length, &bind,
                              &readonly, &continuous, &atomic) != MPI_SUCCESS)
        continue;
      const std::string found = name, tail = ending;
      if (found.rfind(front, 0) != 0 || found.size() < tail.size() ||
          found.compare(found.size() - tail.size(), tail.size(), tail) != 0)
        continue;
      MPI_T_pvar_handle handle;
      int count;
      if (MPI_T_pvar_handle_alloc(session_, i, nullptr, &handle, &count) != MPI_SUCCESS) continue;
      if (!continuous) MPI_T_pvar_start(session_, handle);
      handles_.push_back(handle);
    }
  }
  ~Counters() {
    if (!ready_) return;
    for (MPI_T_pvar_handle& handle : handles_) MPI_T_pvar_handle_free(session_, &handle);
    MPI_T_pvar_session_free(&session_);
    MPI_T_finalize();
  }
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  size_t variables() const { return handles_.size(); }
  unsigned long long sum() const {
    unsigned long long total = 0;
    for (MPI_T_pvar_handle handle : handles_) {
      unsigned long long value[4] = {0};
      if (MPI_T_pvar_read(session_, handle, value) == MPI_SUCCESS) total += value[0];
    }
    return total;
  }

 private:
  bool ready_ = false;
  MPI_T_pvar_session session_{};
  std::vector<MPI_T_pvar_handle> handles_;
};

inline Counters* calls = nullptr;
inline Counters* forced_calls = nullptr;  // of the algorithm that the run forces

inline const char* activity() { return getenv("GPURDMA_TEST_ACTIVE"); }  // nullptr: not asked for
inline bool expect_active() { return activity() && atoi(activity()) != 0; }

// ---- start and end ----

inline const char* forced_algorithm() { return getenv("OMPI_MCA_coll_gpurdma_algorithm"); }

inline void count_calls() {
  if (!activity()) return;
  calls = new Counters("_calls");
  if (forced_algorithm()) forced_calls = new Counters("_calls", forced_algorithm());
}

// After MPI_Init.
inline void begin() {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  count_calls();
}

// Initialises MPI with at least the thread level that is asked for, or says that it cannot and ends as skipped (77).
inline void start(int threads = MPI_THREAD_SINGLE) {
  int provided;
  MPI_Init_thread(nullptr, nullptr, threads, &provided);
  begin();
  if (provided >= threads) return;
  if (rank == 0) printf("SKIP %s: this MPI does not offer the thread level\n", program);
  MPI_Finalize();
  exit(77);
}

// Before MPI_Finalize.
inline void expect_calls() {
  if (!calls) return;
  const unsigned long long ran = calls->sum();
  if (expect_active() && size > 1) expect(ran > 0, "gpurdma ran nothing (%zu counters seen)", calls->variables());
  if (!expect_active()) expect(ran == 0, "gpurdma ran %llu operations where it should not be active", ran);
  if (forced_calls && expect_active())
    expect(forced_calls->sum() == ran, "%llu of %llu calls ran by the algorithm that was forced, %s",
           forced_calls->sum(), ran, forced_algorithm());
  delete forced_calls;
  delete calls;
  calls = forced_calls = nullptr;
}

inline int result() {
  if (rank == 0 && failures == 0)
    printf("ok %s: %d ranks, seed %llu, %ld checks\n", program, size, (unsigned long long)seed, checks);
  fflush(stdout);
  return failures == 0 ? 0 : 1;
}

inline int finish() {
  expect_calls();
  MPI_Finalize();
  return result();
}

}  // namespace check
