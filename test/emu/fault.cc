#include "emu/fault.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "emu/memory.h"

namespace emu {

namespace {

struct sigaction before;

// The process ends here, so that this may do what a signal handler may not.
void on_fault(int signal, siginfo_t* info, void* context) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (info->si_code > 0 && is_of_driver(address)) {
    fprintf(stderr,
            "emulated CUDA driver: the CPU touched device memory: address %#zx is %s (pid %d)\n"
            "  Where: the program's stack (gdb, or the trace that may follow). GPURDMA_EMU_REACHABLE=1 allows it.\n",
            size_t(address), describe(address).c_str(), int(getpid()));
    fflush(stderr);
    abort();
  }
  if ((before.sa_flags & SA_SIGINFO) != 0)
    before.sa_sigaction(signal, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    before.sa_handler(signal);
  else
    sigaction(signal, &before, nullptr);  // and it faults again
}

}  // namespace

void catch_faults() {
  struct sigaction now = {};
  struct sigaction ours = {};
  sigaction(SIGSEGV, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault) return;
  before = now;
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &ours, nullptr);
}

}  // namespace emu
