// Contexts: primary ones, counted and inactive until retained, and those of cuCtxCreate; a stack of them per thread.
#pragma once
#include <memory>
#include <set>
#include <vector>

#include "emu/driver.h"

namespace emu {

struct Stream;

struct Context {
  int device = 0;
  unsigned flags = 0;
  uint64_t id = 0;
  bool alive = false;  // a primary context: it is retained
  bool primary = false;
  CUresult sticky = CUDA_SUCCESS;  // a kernel failed: all that follows fails too
  std::shared_ptr<Stream> legacy;
  std::vector<std::shared_ptr<Stream>> streams;  // without legacy
  std::set<int> peers;                           // devices whose memory its kernels may touch

  CUcontext handle() { return reinterpret_cast<CUcontext>(this); }
};

// The calling thread's current context, or nullptr.
Context* current_context();
// The same where one is needed: *result says what a call without one returns.
Context* need_context(const char* function, CUresult* result);
// The context of a handle that must be alive; nullptr, and *result, where it is not.
Context* context_of(CUcontext handle, const char* function, CUresult* result);
CUresult sticky_error();

// Ends what is left in a context, and takes its memory, streams, events and modules.
void end_context(Context* context, Lock& lock);

}  // namespace emu
