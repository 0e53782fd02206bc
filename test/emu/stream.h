// Streams: each a queue of work and a thread that does it, later, after a random delay.
//
// What a piece of work must wait for beside the order of its stream (an event, the legacy stream, the blocking streams)
// is named when it is submitted: work that has been submitted before never waits for what comes after.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "emu/driver.h"
#include "emu/memory.h"

namespace emu {

struct Capture;

struct Work {
  std::function<void()> run;  // without the lock; empty: nothing but order
  std::vector<std::shared_ptr<Work>> after;
  unsigned delay_us = 0;
  bool done = false;
};

struct Stream {
  Context* context = nullptr;
  unsigned flags = 0;
  int priority = 0;
  uint64_t id = 0;
  bool alive = true;
  bool started = false;
  std::deque<std::shared_ptr<Work>> queue;
  std::shared_ptr<Work> last;
  std::condition_variable wake;
  std::shared_ptr<Capture> capture;

  bool blocking() const { return (flags & CU_STREAM_NON_BLOCKING) == 0; }
  bool idle() const { return last == nullptr || last->done; }
  CUstream handle() { return reinterpret_cast<CUstream>(this); }
};

std::shared_ptr<Stream> make_stream(Context* context, unsigned flags, int priority);

// The stream that a handle means to this thread: nullptr and CU_STREAM_LEGACY the current context's legacy stream,
// CU_STREAM_PER_THREAD its own. nullptr, and *result, where there is none.
Stream* stream_of(CUstream handle, const char* function, CUresult* result);
bool is_legacy(const Stream& stream);

// Adds work to the end of a stream, or to the graph it captures into; *work (may be nullptr) is what to wait for,
// nullptr when captured. An error: the work is forgotten.
CUresult submit(Stream* stream, std::function<void()> run, const char* function,
                std::vector<std::shared_ptr<Work>> after = {}, std::shared_ptr<Work>* work = nullptr);

void wait_for(const std::shared_ptr<Work>& work, Lock& lock);
void wait_for_stream(Stream* stream, Lock& lock);  // the legacy stream: and for all blocking ones
void wait_for_context(Context* context, Lock& lock);
bool is_idle(const Stream& stream);  // the same, asked

void end_streams(Context* context);
// Drops destroyed streams from the list of their context, once all is done that the legacy stream may have to wait for.
void forget_ended_streams(Context* context);
std::vector<const Stream*> living_streams();  // those that a program has made and not destroyed

// Whether this thread may now call what a capture under way does not see (capture.cc).
CUresult unsafe_while_capturing(const char* function);

}  // namespace emu
