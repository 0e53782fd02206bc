// The whole product without MPI, in real processes over UCX: results, paths, and what happens when a peer is lost.
#include "procs/procs.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "coll/catalogue.h"
#include "reduce/types.h"

namespace {

using gpurdma::Op;
using gpurdma::Type;

constexpr double kTimeout = 60;  // seconds

gpurdma_settings_t defaults() {
  gpurdma_settings_t settings;
  gpurdma_settings_default(&settings);
  return settings;
}

// Without shared memory of our own.
gpurdma_settings_t over_ucx(const char* transports) {
  setenv("UCX_TLS", transports, 1);
  gpurdma_settings_t settings = defaults();
  settings.shared_memory = 0;
  return settings;
}

int allreduce(procs::Rank& self, const std::vector<int>& in, std::vector<int>& out) {
  return gpurdma_allreduce(self.comm, in.data(), out.data(), in.size(), int(Op::sum), int(Type::int32));
}

// One allreduce of `count` elements with a result that every rank can compute; 0 if it is right.
int check_sum(procs::Rank& self, size_t count) {
  std::vector<int> in(count), out(count, -1);
  for (size_t i = 0; i < count; ++i) in[i] = int(i % 1000) * (self.rank + 1);
  if (allreduce(self, in, out) != GPURDMA_OK) return 2;
  const int ranks = self.size * (self.size + 1) / 2;
  for (size_t i = 0; i < count; ++i)
    if (out[i] != int(i % 1000) * ranks) return 3;
  return 0;
}

uint64_t counter(procs::Rank& self, const char* name) {
  const gpurdma_counter_t* counters;
  const size_t n = gpurdma_counters(&counters);
  for (size_t i = 0; i < n; ++i)
    if (std::strcmp(counters[i].name, name) == 0) return gpurdma_counter_read(self.runtime, i);
  return UINT64_MAX;
}

// Every algorithm of the catalogue on some rank counts and sizes.
void every_algorithm(const gpurdma_settings_t& base) {
  for (const gpurdma::Algorithm& algorithm : gpurdma::catalogue()) {
    for (const int ranks : {1, 2, 3, 5}) {
      EXPECT_EQ(procs::run(ranks, kTimeout,
                           [&](procs::Rank& self) {
                             gpurdma_settings_t settings = base;
                             settings.algorithm = algorithm.name;
                             self.open(settings);
                             for (const size_t count : {0, 1, 2, 3, 17, 1000, 2049, 20000, 300000})
                               if (const int bad = check_sum(self, count)) return bad;
                             self.barrier();
                             self.close();
                             return 0;
                           }),
                0)
          << algorithm.name << " on " << ranks;
    }
  }
}

TEST(Processes, EveryAlgorithmOverSharedMemory) { every_algorithm(defaults()); }

TEST(Processes, EveryAlgorithmOverSharedMemoryOfUcx) {
  const char* const before = getenv("UCX_TLS");
  every_algorithm(over_ucx("posix,cma,self"));
  before ? setenv("UCX_TLS", before, 1) : unsetenv("UCX_TLS");
}

// Pieces larger than our slots are copied straight from the sender, or go over UCX; either way they arrive between the
// small ones of the same operations.
TEST(Processes, PiecesTooLargeForASlot) {
  gpurdma_settings_t settings = defaults();
  settings.piece = size_t(1) << 20;
  every_algorithm(settings);
  settings.single_copy = 0;
  every_algorithm(settings);
}

// More ranks than lanes in an arena, each with bulk data for the others.
void too_few_lanes(bool single_copy) {
  EXPECT_EQ(procs::run(6, kTimeout,
                       [single_copy](procs::Rank& self) {
                         gpurdma_settings_t settings = defaults();
                         settings.single_copy = single_copy;
                         settings.shared_memory = size_t(1) << 20;  // three lanes
                         settings.algorithm = "doubling";
                         self.open(settings);
                         for (int i = 0; i < 20; ++i)
                           if (const int bad = check_sum(self, 20000)) return bad;
                         self.barrier();
                         self.close();
                         return 0;
                       }),
            0);
}

TEST(Processes, WhatFindsNoLaneIsCopiedFromTheSender) { too_few_lanes(true); }
TEST(Processes, WhatFindsNoLaneGoesOverUcx) { too_few_lanes(false); }

TEST(Processes, ARankWithoutUcxWorksInSharedMemory) {
  EXPECT_EQ(procs::run(3, kTimeout,
                       [](procs::Rank& self) {
                         if (self.rank == 1) setenv("UCX_TLS", "no_such_transport", 1);
                         gpurdma_settings_t settings = defaults();
                         settings.verbose = 0;
                         self.open(settings);
                         for (const size_t count : {1, 1000, 100000})
                           if (const int bad = check_sum(self, count)) return bad;
                         self.barrier();
                         self.close();
                         return 0;
                       }),
            0);
}

// Moves the process that this one forks next into a container: another process-id space, another /dev/shm.
bool enter_container() {
  return unshare(CLONE_NEWPID | CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64m") == 0;
}

int status_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

TEST(Processes, RanksInContainersReachEachOtherOverUcx) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer loses its symbols, and with them its suppressions, in a container";
#endif
  const pid_t trial = fork();
  if (trial == 0) _exit(enter_container() ? 0 : 1);
  if (status_of(trial) != 0) GTEST_SKIP() << "containers cannot be made here; root may";
  EXPECT_EQ(procs::run(3, kTimeout,
                       [](procs::Rank& self) {
                         if (!enter_container()) return 30;
                         const pid_t child = fork();
                         if (child != 0)
                           _exit(status_of(child));  // AddressSanitizer's search for leaks does not work here
                         if (mount("proc", "/proc", "proc", 0, nullptr) != 0) return 31;
                         self.open(defaults());
                         for (const size_t count : {1, 1000, 100000})
                           if (const int bad = check_sum(self, count)) _exit(bad);
                         self.barrier();
                         self.close();
                         _exit(0);
                       }),
            0);
}

TEST(Processes, PathsAreCountedWhereBytesPassed) {
  const auto over = [](const char* transports, const char* path) {
    return procs::run(2, kTimeout, [&](procs::Rank& self) {
      gpurdma_settings_t settings = transports ? over_ucx(transports) : defaults();
      settings.algorithm = "doubling";
      settings.verbose = 0;
      self.open(settings);
      for (const size_t count : {5, 300, 5000, 100000})
        if (const int bad = check_sum(self, count)) return bad;
      if (counter(self, (std::string("doubling_") + path + "_calls").c_str()) != 4) return 10;
      if (counter(self, (std::string("doubling_") + path + "_bytes").c_str()) != 4 * 105305) return 11;
      if (counter(self, (std::string(path) + "_sent_bytes").c_str()) != 4 * 105305) return 12;
      self.barrier();
      self.close();
      return 0;
    });
  };
  EXPECT_EQ(over(nullptr, "shared_memory"), 0);
  EXPECT_EQ(over("posix,cma,self", "shared_memory"), 0);
  EXPECT_EQ(over("tcp,self", "tcp"), 0);
}

TEST(Processes, NonblockingInAnyOrder) {
  EXPECT_EQ(procs::run(3, kTimeout,
                       [](procs::Rank& self) {
                         self.open(defaults());
                         constexpr int kCalls = 40;
                         std::vector<std::vector<int>> in, out;
                         std::vector<int> status(kCalls, -1);
                         for (int i = 0; i < kCalls; ++i) {
                           in.emplace_back(size_t(1 + 977 * i), self.rank + i);
                           out.emplace_back(in.back().size(), -1);
                         }
                         for (int i = 0; i < kCalls; ++i) {
                           const auto n = size_t(i);
                           if (gpurdma_iallreduce(self.comm, in[n].data(), out[n].data(), in[n].size(), int(Op::sum),
                                                  int(Type::int32), &status[n]))
                             return 2;
                           if (i % 7 == self.rank && check_sum(self, 10))
                             return 3;  // a blocking one at another place on each rank: every rank has six
                         }
                         for (int more = kCalls / 7 + (self.rank < kCalls % 7); more < 6; ++more)
                           if (check_sum(self, 10)) return 4;
                         for (int i = 0; i < kCalls; ++i)
                           while (status[size_t(i)] == -1) gpurdma_progress(self.runtime);
                         for (int i = 0; i < kCalls; ++i) {
                           if (status[size_t(i)] != GPURDMA_OK) return 5;
                           for (const int value : out[size_t(i)])
                             if (value != 3 * i + 3) return 6;
                         }
                         self.barrier();
                         self.close();
                         return 0;
                       }),
            0);
}

// A call that failed was followed by others that fail too, and soon at once, with CLOSED. 0 if so.
int ends_closed(procs::Rank& self, size_t count) {
  std::vector<int> in(count, 1), out(count);
  const auto begin = std::chrono::steady_clock::now();
  for (int status = 0; status != GPURDMA_CLOSED;) {
    status = allreduce(self, in, out);
    if (status == GPURDMA_OK) return 21;
    if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(5)) return 22;
  }
  return 0;
}

// Rank 1 dies; the others must get an error soon, also those that do not talk to rank 1, and the next call fails at
// once.
void peer_dies(const char* transports, size_t count, size_t piece = 0) {
  constexpr int kRanks = 4;
  const int bad = procs::run(kRanks, kTimeout, [&](procs::Rank& self) {
    setenv("UCX_KEEPALIVE_INTERVAL", "1s", 0);
    gpurdma_settings_t settings = transports ? over_ucx(transports) : defaults();
    settings.verbose = 0;
    settings.piece = piece;
    self.open(settings);
    if (const int wrong = check_sum(self, count)) return wrong;
    self.barrier();
    if (self.rank == 1) raise(SIGKILL);
    std::vector<int> in(count, 1), out(count);
    int status = GPURDMA_OK;
    for (int i = 0; i < 3 && status == GPURDMA_OK; ++i) status = allreduce(self, in, out);
    if (status == GPURDMA_OK) return 20;
    if (const int wrong = ends_closed(self, count)) return wrong;
    self.close();
    return 0;
  });
  EXPECT_EQ(bad, 1) << "only rank 1, which was killed, ends badly";
}

TEST(Processes, DeadPeerInSharedMemorySmall) { peer_dies(nullptr, 1); }
TEST(Processes, DeadPeerInSharedMemoryLarge) { peer_dies(nullptr, 1000000); }
TEST(Processes, DeadPeerWithPiecesOnOffer) { peer_dies(nullptr, 1000000, size_t(1) << 18); }
TEST(Processes, DeadPeerOverSharedMemoryOfUcxSmall) { peer_dies("posix,cma,self", 1); }
TEST(Processes, DeadPeerOverSharedMemoryOfUcxLarge) { peer_dies("posix,cma,self", 1000000); }
TEST(Processes, DeadPeerOverTcp) { peer_dies("tcp,self", 30000); }

TEST(Processes, DeadlineEndsAWaitForAnAbsentRank) {
  EXPECT_EQ(procs::run(3, kTimeout,
                       [](procs::Rank& self) {
                         gpurdma_settings_t settings = defaults();
                         settings.verbose = 0;
                         settings.deadline_s =
                             5;  // the first call makes UCX contexts, which takes a second on a busy machine
                         self.open(settings);
                         if (check_sum(self, 100)) return 2;
                         if (self.rank != 2) {
                           std::vector<int> in(100000, 1), out(100000);
                           const int status = allreduce(self, in, out);
                           if (status != GPURDMA_DEADLINE && status != GPURDMA_REMOTE) return 3;
                           if (const int wrong = ends_closed(self, 10)) return wrong;
                         }
                         self.barrier();
                         if (self.rank == 2)  // the others told us
                           if (const int wrong = ends_closed(self, 10)) return wrong;
                         self.barrier();
                         self.close();
                         return 0;
                       }),
            0);
}

TEST(Processes, ARankWithoutUcxFailsAll) {
  EXPECT_EQ(procs::run(3, kTimeout,
                       [](procs::Rank& self) {
                         gpurdma_settings_t settings = over_ucx(self.rank == 1 ? "no_such_transport" : "all");
                         settings.verbose = 0;
                         self.open(settings);
                         std::vector<int> in(10, 1), out(10);
                         if (allreduce(self, in, out) == GPURDMA_OK) return 2;
                         if (const int wrong = ends_closed(self, 10)) return wrong;
                         self.barrier();
                         self.close();
                         return 0;
                       }),
            0);
}

// Communicators come and go, each with its greetings and a call; memory stays what it was.
TEST(Processes, TenThousandCommunicators) {
  EXPECT_EQ(procs::run(2, kTimeout,
                       [](procs::Rank& self) {
                         self.open(defaults());
                         size_t before = 0;
                         for (int i = 0; i < 10000; ++i) {
                           if (i == 1000) before = mallinfo2().uordblks;
                           gpurdma_comm_destroy(self.comm);
                           self.open_communicator();
                           if (const int bad = check_sum(self, i % 16 == 0 ? 3000 : 1)) return bad;
                         }
                         const size_t after = mallinfo2().uordblks;
                         if (after > before + 16384) {
                           std::fprintf(stderr, "%zu bytes became %zu\n", before, after);
                           return 40;
                         }
                         self.barrier();
                         self.close();
                         return 0;
                       }),
            0);
}

// As many ranks as a large node has. Without UCX, so that what shared memory cannot carry would show.
TEST(Processes, ACrowdedNode) {
  constexpr int kRanks = 64;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_max < 2 * kRanks * kRanks) GTEST_SKIP() << "too few files may be open for sockets between all ranks";
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  EXPECT_EQ(procs::run(kRanks, kTimeout,
                       [](procs::Rank& self) {
                         if (!freopen("/dev/null", "w", stderr)) return 41;  // UCX says 128 times why it does not start
                         setenv("UCX_TLS", "no_such_transport", 1);
                         gpurdma_settings_t settings = defaults();
                         settings.verbose = 0;
                         self.open(settings);
                         for (const size_t count : {1, 3000, 100000, 300000})
                           if (const int bad = check_sum(self, count)) return bad;
                         self.barrier();
                         self.close();
                         return 0;
                       }),
            0);
}

}  // namespace
