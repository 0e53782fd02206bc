// The engine's lock: one atomic flag, since holders are short and most processes have one thread in MPI.
//
// Progress only ever tries it (whoever holds it makes the same progress); calls that must have it spin politely.
#pragma once
#include <sched.h>

#include <atomic>

namespace gpurdma {

class Lock {
 public:
  bool try_lock() { return !held_.load(std::memory_order_relaxed) && !held_.exchange(true, std::memory_order_acquire); }
  void lock() {
    while (!try_lock()) sched_yield();
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace gpurdma
