#include "transport/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include "base/clock.h"

namespace gpurdma {
namespace {

struct Stat {
  char state;  // '\0': no such process
  uint64_t started;
};

// Fields 3 and 22 of /proc/PID/stat; the name in field 2 may hold anything, so counting starts behind its last bracket.
Stat read_stat(uint32_t pid) {
  char path[64], text[1024];
  std::snprintf(path, sizeof path, "/proc/%u/stat", pid);
  std::FILE* file = std::fopen(path, "re");
  if (!file) return {};
  const size_t n = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[n] = '\0';
  const char* at = std::strrchr(text, ')');
  Stat stat{};
  unsigned long long started = 0;
  if (!at || std::sscanf(at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                         &stat.state, &started) != 2)
    return {};
  stat.started = started;
  return stat;
}

uint64_t hash(const char* text, size_t n) {  // FNV-1a
  uint64_t h = 14695981039346656037u;
  for (size_t i = 0; i < n; ++i) h = (h ^ uint8_t(text[i])) * 1099511628211u;
  return h;
}

uint64_t machine() {
  char id[64];
  std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "re");
  if (!file) {
    const size_t n = gethostname(id, sizeof id) == 0 ? strnlen(id, sizeof id) : 0;
    return hash(id, n);
  }
  const size_t n = std::fread(id, 1, sizeof id, file);
  std::fclose(file);
  return hash(id, n);
}

}  // namespace

ProcessIdentity ProcessIdentity::own() {
  ProcessIdentity identity{};
  if (getrandom(&identity.unique, sizeof identity.unique, 0) != sizeof identity.unique)
    identity.unique = clock::nanoseconds() << 20 ^ uint64_t(getpid());
  identity.machine = gpurdma::machine();
  struct stat space;
  if (stat("/proc/self/ns/pid", &space) == 0) identity.pid_space = space.st_ino;
  identity.pid = uint32_t(getpid());
  identity.started = read_stat(identity.pid).started;
  return identity;
}

ProcessWatch::ProcessWatch(const ProcessIdentity& peer, const ProcessIdentity& own) {
  const bool same_space = peer.machine == own.machine && peer.pid_space == own.pid_space && own.pid_space != 0;
  if (!same_space || peer.pid == own.pid || peer.started == 0) return;
  pid_ = peer.pid;
  started_ = peer.started;
#ifdef SYS_pidfd_open
  fd_ = int(syscall(SYS_pidfd_open, pid_t(peer.pid), 0u));
  // The number may have been given to another process by now.
  if (fd_ >= 0 && read_stat(pid_).started != started_) {
    close(fd_);
    fd_ = -1;
  }
#endif
}

ProcessWatch::~ProcessWatch() {
  if (fd_ >= 0) close(fd_);
}

ProcessWatch& ProcessWatch::operator=(ProcessWatch&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(started_, other.started_);
  std::swap(fd_, other.fd_);
  return *this;
}

bool ProcessWatch::alive() const {
  if (pid_ == 0) return true;
  if (fd_ >= 0) {
    pollfd readable{fd_, POLLIN, 0};
    return poll(&readable, 1, 0) <= 0;
  }
  const Stat now = read_stat(pid_);
  return now.state != '\0' && now.state != 'Z' && now.state != 'X' && now.started == started_;
}

}  // namespace gpurdma
