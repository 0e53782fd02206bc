// Process: who a peer is as a process of the operating system, and whether it still lives.
//
// UCX tells of dead peers between nodes, but in shared memory only of those it happens to send to, so there we look
// ourselves: a process that shares our process-id space is watched through a pidfd (Linux 5.3 and later), otherwise
// through /proc.
#pragma once
#include <cstdint>

namespace gpurdma {

struct ProcessIdentity {  // as it travels in an address
  uint64_t unique;        // random: two processes never share it
  uint64_t machine;       // hash of the kernel's boot id
  uint64_t pid_space;     // inode of the process-id namespace
  uint64_t started;       // clock ticks since boot, from /proc/PID/stat
  uint32_t pid;           // in its own process-id space
  uint32_t reserved;

  static ProcessIdentity own();
};

// Watches one other process. Move-only: owns a file descriptor, which children that exec do not inherit.
class ProcessWatch {
 public:
  ProcessWatch() = default;
  // Watches `peer` where it can be seen from here; otherwise can_see() is false and alive() always true.
  ProcessWatch(const ProcessIdentity& peer, const ProcessIdentity& own);
  ~ProcessWatch();
  ProcessWatch(ProcessWatch&& other) noexcept { *this = static_cast<ProcessWatch&&>(other); }
  ProcessWatch& operator=(ProcessWatch&& other) noexcept;

  bool can_see() const { return pid_ != 0; }
  // Cost: one system call. A process that was killed but not yet waited for is not alive.
  bool alive() const;

 private:
  uint32_t pid_ = 0;
  uint64_t started_ = 0;
  int fd_ = -1;
};

}  // namespace gpurdma
