// Stream: one of our streams, and how far its work has come.
//
// Work that is submitted to the stream gets a ticket; mark() lets the stream write a number to host memory behind all
// that was submitted so far, and reached() compares: no call of the driver tells that work has ended. Where the driver
// cannot write, or refuses to, events stand in for it. Streams are non-blocking ones: the application's default stream
// neither waits for them nor holds them up.
//
// All calls but ticket() and reached() are made with the context entered. One thread at a time.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>

#include "device/driver.h"

namespace gpurdma {

class Stream {
 public:
  Stream() = default;
  Stream(Stream&&) = delete;

  // word: 4 bytes of pinned memory, `word_on_gpu` as the GPU sees them. On failure the stream is as before.
  CUresult open(const Driver& driver, std::atomic<uint32_t>* word, CUdeviceptr word_on_gpu);
  // In a context that is gone nothing is done. Waits for what is under way.
  void close(bool context_lives);

  CUstream handle() const { return stream_; }
  // For work submitted since the last mark().
  uint32_t ticket() {
    unmarked_ = true;
    return marked_ + 1;
  }
  bool reached(uint32_t ticket) const { return int32_t(reached_ - ticket) >= 0; }
  bool idle() const { return reached_ == marked_ && !unmarked_; }
  bool has_unmarked() const { return unmarked_; }

  // The work submitted so far will be told to have ended. Does not fail: where nothing else works, the stream is asked
  // whether all of it is done.
  void mark();
  // Looks how far the stream has come. Enters nothing where the stream writes to memory, so that it may be called
  // without the context then (polls_memory()).
  CUresult poll();
  bool polls_memory() const { return events_.empty() && !whole_; }
  // Asks the driver whether the stream is well: a GPU that failed does not write any more.
  CUresult check();
  // Waits for all that is under way, which then counts as ended, however it did.
  void drain(bool context_lives);

 private:
  struct Event {
    CUevent event;
    uint32_t number;
  };

  const Driver* driver_ = nullptr;
  CUstream stream_ = nullptr;
  std::atomic<uint32_t>* word_ = nullptr;
  CUdeviceptr word_on_gpu_ = 0;
  bool writes_ = true;  // the driver can write to memory from a stream
  bool unmarked_ = false;
  bool whole_ = false;    // only that all of the stream is done can be told
  uint32_t marked_ = 0;   // the last number that the stream was told to write
  uint32_t reached_ = 0;  // the last number that is known to be written
  std::deque<Event> events_, spare_events_;
};

}  // namespace gpurdma
