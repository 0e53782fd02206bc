// Long vectors in chunks: several stages, one after another on a chunk, each beginning the next chunk meanwhile.
//
// Messages to one peer go out in program order, and a stage often begins when the last operation of the stage before is
// done. So a stage of one chunk is recorded behind the earlier stages of the next chunks: those need not wait for it.
// A chunk should be as long as the slots are, which also keeps it in the cache from one stage to the next.
#pragma once
#include "plan/blocks.h"

namespace gpurdma {

// Cuts `count` elements into chunks of about `length` > 0 and records each through all stages: f(chunk's first element,
// its size).
template <class... Stages>
void in_chunks(size_t count, size_t length, Stages... stages) {
  if (count == 0) return;
  const int chunks = static_cast<int>((count + length - 1) / length);
  const Blocks chunk(0, count, chunks);
  for (int turn = 0; turn < chunks + static_cast<int>(sizeof...(stages)) - 1; ++turn) {
    int c = turn;
    const auto record = [&](const auto& stage) {
      if (0 <= c && c < chunks) stage(chunk.at(c), chunk.size(c));
      --c;
    };
    (record(stages), ...);
  }
}

}  // namespace gpurdma
