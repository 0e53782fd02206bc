// Processes: real ranks without MPI. Forks them, joins every pair with sockets, and gives each the callbacks that a
// gpurdma communicator needs, so the product runs over UCX in tests, in sanitizer builds and in benches of its own.
#pragma once
#include <sys/types.h>

#include <functional>
#include <vector>

#include "gpurdma.h"

namespace procs {

// What one rank has. Valid in its process only.
struct Rank {
  int rank, size;
  std::vector<int> sockets;                    // by rank; our own is -1. SOCK_SEQPACKET: one packet is one Hello
  std::vector<std::vector<int>> more_sockets;  // the same, for further communicators
  std::vector<int> signals;                    // the same, for barrier()
  std::vector<pid_t> pids;  // of the ranks that were forked before this one; complete in the parent only

  gpurdma_runtime_t* runtime = nullptr;
  gpurdma_comm_t* comm = nullptr;

  // Makes runtime and communicator. Fails the process when it cannot.
  void open(const gpurdma_settings_t& settings);
  // Another communicator, as open() makes it.
  void open_communicator();
  // One beside it, which may be used at the same time; i: below the number that run() was told.
  gpurdma_comm_t* another_comm(size_t i);
  void close();
  // All ranks have come here.
  void barrier();
};

// Runs body(rank) in `size` new processes; returns how many did not exit with 0. A process that takes longer than
// `timeout_s` is killed and counts. cores: bind rank r to core r. more_comms: communicators for
// which there are sockets, beside the first.
int run(int size, double timeout_s, const std::function<int(Rank&)>& body, bool cores = false, size_t more_comms = 0);

}  // namespace procs
