// Events: what was the last thing in a stream when one was recorded.
#pragma once
#include <memory>
#include <vector>

#include "emu/stream.h"

namespace emu {

struct Event {
  Context* context = nullptr;
  unsigned flags = 0;
  bool alive = true;
  std::shared_ptr<Work> recorded;     // nullptr: never was, or while a capture was on
  std::shared_ptr<Capture> captured;  // of which capture it is a node
  std::shared_ptr<double> time_ms;    // when it ended

  CUevent handle() { return reinterpret_cast<CUevent>(this); }
};

void end_events(Context* context);
size_t living_events();

}  // namespace emu
