// Long vectors in chunks: several stages, one after another on a chunk, each beginning the next chunk meanwhile.
//
// Messages to one peer go out in program order, and a stage often begins when the last operation of the stage before is
// done. So a stage of one chunk is recorded behind the earlier stages of the next chunks: those need not wait for it.
// A chunk should not be longer than the slots are, which also keeps it in the cache between the stages, and a whole
// number of pieces at every place: then stages cut it alike, and one sends what the other reduced as it is.
#pragma once
#include <algorithm>
#include <cstddef>

namespace gpurdma {

// Cuts `count` elements into chunks of `length`, the last one shorter, and records each through all stages: f(chunk's
// first element, its size).
template <class... Stages>
void in_chunks(size_t count, size_t length, Stages... stages) {
  const size_t chunks = length > 0 ? (count + length - 1) / length : 0;
  for (size_t turn = 0; chunks > 0 && turn < chunks + sizeof...(stages) - 1; ++turn) {
    size_t c = turn;  // wraps around where a stage has no chunk yet
    const auto record = [&](const auto& stage) {
      if (c < chunks) stage(c * length, std::min(length, count - c * length));
      --c;
    };
    (record(stages), ...);
  }
}

}  // namespace gpurdma
