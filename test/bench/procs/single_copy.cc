// Two copies or one? Two processes exchange vectors, as the allgather of an allreduce does: by pieces through slots of
// shared memory (the sender copies in, the receiver out), or by process_vm_readv straight from the peer's memory, which
// copies once but has the kernel look up every page. Prints microseconds for one exchange, medians of alternating
// blocks. Usage: single_copy [piece]
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "procs/procs.h"

namespace {

constexpr size_t kSlots = 4, kLargestPiece = size_t(1) << 18, kLargest = size_t(64) << 20;

struct alignas(128) Counter {
  std::atomic<uint64_t> value;
};

struct Shared {
  Counter filled[2], emptied[2], rounds[2];
  const char* source[2];  // in each process's own address space
  int pid[2];
  alignas(4096) char slots[2][kSlots][kLargestPiece];
};

struct Side {
  Shared& shared;
  int me;
  std::vector<char> from, to;
  uint64_t pieces = 0, round = 0;

  void await(const Counter& counter, uint64_t least) const {
    while (counter.value.load(std::memory_order_acquire) < least) {
    }
  }
  void meet() {
    shared.rounds[me].value.store(++round, std::memory_order_release);
    await(shared.rounds[1 - me], round);
  }
  void through_slots(size_t bytes, size_t piece) {
    const size_t n = (bytes + piece - 1) / piece;
    for (size_t i = 0; i < n + 1; ++i) {
      if (i < n) {
        const uint64_t k = pieces + i;
        if (k >= kSlots) await(shared.emptied[me], k - kSlots + 1);
        std::memcpy(shared.slots[me][k % kSlots], from.data() + i * piece, std::min(piece, bytes - i * piece));
        shared.filled[me].value.store(k + 1, std::memory_order_release);
      }
      if (i > 0) {
        const uint64_t k = pieces + i - 1;
        await(shared.filled[1 - me], k + 1);
        std::memcpy(to.data() + (i - 1) * piece, shared.slots[1 - me][k % kSlots],
                    std::min(piece, bytes - (i - 1) * piece));
        shared.emptied[1 - me].value.store(k + 1, std::memory_order_release);
      }
    }
    pieces += n;
  }
  bool straight(size_t bytes) {
    meet();  // the peer's memory may be read
    iovec local{to.data(), bytes}, remote{const_cast<char*>(shared.source[1 - me]), bytes};
    const bool good = process_vm_readv(shared.pid[1 - me], &local, 1, &remote, 1, 0) == ssize_t(bytes);
    meet();  // and changed again
    return good;
  }
};

}  // namespace

int main(int argc, char** argv) {
  const size_t piece = std::min(argc > 1 ? size_t(std::atol(argv[1])) : 32768, kLargestPiece);
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  Shared& shared = *new (memory) Shared();
  return procs::run(
      2, 300,
      [&](procs::Rank& self) {
        Side side{shared, self.rank, std::vector<char>(kLargest, char(1 + self.rank)), std::vector<char>(kLargest)};
        shared.source[self.rank] = side.from.data();
        shared.pid[self.rank] = int(getpid());
        self.barrier();
        if (self.rank == 0) std::printf("%10s %14s %18s\n", "bytes", "slots, us", "process_vm_readv");
        for (size_t bytes = 4096; bytes <= kLargest; bytes *= 4) {
          using Clock = std::chrono::steady_clock;
          const int calls = int(std::max<size_t>(3, (size_t(8) << 20) / bytes));
          std::vector<double> us[2];
          for (int block = 0; block < 14; ++block) {
            side.meet();
            const auto begin = Clock::now();
            for (int i = 0; i < calls; ++i) {
              if (block % 2 == 0)
                side.through_slots(bytes, piece);
              else if (!side.straight(bytes))
                return 2;
            }
            us[block % 2].push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / calls);
            if (std::any_of(side.to.data(), side.to.data() + bytes, [&](char c) { return c != char(2 - self.rank); }))
              return 3;
          }
          for (auto& list : us) std::sort(list.begin(), list.end());
          if (self.rank == 0) std::printf("%10zu %14.2f %18.2f\n", bytes, us[0][3], us[1][3]);
          std::fflush(stdout);
        }
        self.barrier();
        return 0;
      },
      true);
}
