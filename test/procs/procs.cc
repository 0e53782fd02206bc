#include "procs/procs.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace procs {
namespace {

struct Exchange {
  int socket;
  void* theirs;
  size_t capacity;
};

void* exchange(void* opaque, int rank, const void* mine, size_t bytes, void* theirs, size_t capacity) {
  const int socket = (*static_cast<const std::vector<int>*>(opaque))[size_t(rank)];
  if (send(socket, mine, bytes, MSG_NOSIGNAL) != ssize_t(bytes)) return nullptr;
  return new Exchange{socket, theirs, capacity};
}

int exchange_test(void* handle, size_t* received) {
  const Exchange& e = *static_cast<Exchange*>(handle);
  const ssize_t n = recv(e.socket, e.theirs, e.capacity, MSG_DONTWAIT);
  if (n > 0) *received = size_t(n);
  if (n < 0 && errno == EAGAIN) return 0;
  return n > 0 ? 1 : -1;
}

void exchange_end(void* handle) { delete static_cast<Exchange*>(handle); }

// A socket pair between every two ranks.
struct Mesh {
  std::vector<std::vector<int>> ends;  // [rank][peer]

  explicit Mesh(int size) : ends(size_t(size), std::vector<int>(size_t(size), -1)) {
    for (int a = 0; a < size; ++a) {
      for (int b = a + 1; b < size; ++b) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0) std::abort();
        ends[size_t(a)][size_t(b)] = pair[0];
        ends[size_t(b)][size_t(a)] = pair[1];
      }
    }
  }
  void close_all_but(int rank) const {
    for (int a = 0; a < int(ends.size()); ++a)
      for (const int end : ends[size_t(a)])
        if (a != rank && end >= 0) close(end);
  }
};

gpurdma_comm_t* make_comm(Rank& self, const char* name, std::vector<int>& sockets) {
  gpurdma_comm_info_t info{};
  info.rank = self.rank;
  info.size = self.size;
  info.name = name;
  info.oversubscribed = self.size > int(std::thread::hardware_concurrency());
  info.opaque = &sockets;
  info.exchange = exchange;
  info.exchange_test = exchange_test;
  info.exchange_end = exchange_end;
  gpurdma_comm_t* comm = nullptr;
  if (gpurdma_comm_create(self.runtime, &info, &comm) != GPURDMA_OK) std::_Exit(91);
  return comm;
}

void log_line(int, const char* line) { std::fprintf(stderr, "gpurdma[%d]: %s\n", int(getpid()), line); }

}  // namespace

void Rank::open(const gpurdma_settings_t& settings) {
  const gpurdma_host_t host{log_line, [] {}, [](int) {},
                            [](void* cookie, int status) { *static_cast<int*>(cookie) = status; }};
  if (gpurdma_runtime_create(&settings, &host, &runtime) != GPURDMA_OK) std::_Exit(90);
  open_communicator();
}

void Rank::open_communicator() { comm = make_comm(*this, "test", sockets); }

gpurdma_comm_t* Rank::another_comm(size_t i) { return make_comm(*this, "another", more_sockets[i]); }

void Rank::close() {
  gpurdma_comm_destroy(comm);
  gpurdma_runtime_destroy(runtime);
  comm = nullptr;
  runtime = nullptr;
}

void Rank::barrier() {
  char byte = 0;
  const auto wait = [&](int from) {
    pollfd p{signals[size_t(from)], POLLIN, 0};
    while (poll(&p, 1, 0) == 0)  // progress meanwhile: others may need ours
      if (runtime) gpurdma_progress(runtime);
    if (recv(signals[size_t(from)], &byte, 1, 0) != 1) std::_Exit(92);
  };
  const auto tell = [&](int to) {
    if (send(signals[size_t(to)], &byte, 1, MSG_NOSIGNAL) != 1) std::_Exit(93);
  };
  if (rank == 0) {
    for (int r = 1; r < size; ++r) wait(r);
    for (int r = 1; r < size; ++r) tell(r);
  } else {
    tell(0);
    wait(0);
  }
}

int run(int size, double timeout_s, const std::function<int(Rank&)>& body, bool cores, size_t more_comms) {
  const Mesh sockets(size), signals(size);
  std::vector<Mesh> more;
  for (size_t i = 0; i < more_comms; ++i) more.emplace_back(size);
  std::vector<pid_t> pids;
  std::fflush(nullptr);
  for (int r = 0; r < size; ++r) {
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (cores) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(r, &set);
        sched_setaffinity(0, sizeof set, &set);
      }
      sockets.close_all_but(r);
      signals.close_all_but(r);
      for (const Mesh& mesh : more) mesh.close_all_but(r);
      Rank rank;
      rank.rank = r;
      rank.size = size;
      rank.sockets = sockets.ends[size_t(r)];
      for (const Mesh& mesh : more) rank.more_sockets.push_back(mesh.ends[size_t(r)]);
      rank.signals = signals.ends[size_t(r)];
      rank.pids = pids;
      const int status = body(rank);
      std::fflush(nullptr);
      std::exit(status);
    }
    pids.push_back(pid);
  }
  sockets.close_all_but(-1);
  signals.close_all_but(-1);
  for (const Mesh& mesh : more) mesh.close_all_but(-1);

  int bad = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  for (size_t r = 0; r < pids.size(); ++r) {
    int status = 0;
    while (waitpid(pids[r], &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) {
        std::fprintf(stderr, "rank %zu still runs after %.0f s: killed\n", r, timeout_s);
        kill(pids[r], SIGKILL);
        waitpid(pids[r], &status, 0);
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    ++bad;
    std::fprintf(stderr, "rank %zu ended with %s %d\n", r, WIFEXITED(status) ? "status" : "signal",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
  }
  return bad;
}

}  // namespace procs
