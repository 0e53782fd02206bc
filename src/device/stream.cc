#include "device/stream.h"

#include <climits>

namespace gpurdma {

// The highest priority: a peer waits for what we do, and it is short.
CUresult Stream::open(const Driver& driver, std::atomic<uint32_t>* word, CUdeviceptr word_on_gpu) {
  CUstream stream;
  const CUresult result = driver.stream_create(&stream, CU_STREAM_NON_BLOCKING, INT_MIN);
  if (result != CUDA_SUCCESS) return result;
  driver_ = &driver;
  stream_ = stream;
  word_ = word;
  word_->store(0, std::memory_order_relaxed);
  word_on_gpu_ = word_on_gpu;
  writes_ = driver.stream_write_value != nullptr;
  return CUDA_SUCCESS;
}

void Stream::close(bool context_lives) {
  drain(context_lives);
  if (stream_ && context_lives) {
    for (const auto* events : {&events_, &spare_events_}) {
      for (const Event& event : *events) (void)driver_->event_destroy(event.event);
    }
    (void)driver_->stream_destroy(stream_);
  }
  stream_ = nullptr;
  events_.clear();
  spare_events_.clear();
  marked_ = reached_ = 0;
}

void Stream::drain(bool context_lives) {
  if (stream_ && context_lives && !idle()) (void)driver_->stream_synchronize(stream_);
  spare_events_.insert(spare_events_.end(), events_.begin(), events_.end());
  events_.clear();
  unmarked_ = whole_ = false;
  reached_ = marked_;
}

void Stream::mark() {
  if (!unmarked_) return;
  unmarked_ = false;
  ++marked_;
  if (writes_) {
    const CUresult result = driver_->stream_write_value(stream_, word_on_gpu_, marked_, CU_STREAM_WRITE_VALUE_DEFAULT);
    if (result == CUDA_SUCCESS) return;
    if (result == CUDA_ERROR_NOT_SUPPORTED) writes_ = false;
  }
  Event event{nullptr, marked_};
  if (!spare_events_.empty()) {
    event.event = spare_events_.front().event;
    spare_events_.pop_front();
  } else if (driver_->event_create(&event.event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    whole_ = true;
    return;
  }
  if (driver_->event_record(event.event, stream_) == CUDA_SUCCESS) return events_.push_back(event);
  spare_events_.push_back(event);
  whole_ = true;
}

CUresult Stream::poll() {
  const uint32_t written = word_->load(std::memory_order_acquire);
  if (int32_t(written - reached_) > 0) reached_ = written;
  while (!events_.empty()) {
    const CUresult result = driver_->event_query(events_.front().event);
    if (result == CUDA_ERROR_NOT_READY) break;
    if (result == CUDA_SUCCESS && !reached(events_.front().number)) reached_ = events_.front().number;
    if (result != CUDA_SUCCESS) whole_ = true;
    spare_events_.push_back(events_.front());
    events_.pop_front();
  }
  return whole_ ? check() : CUDA_SUCCESS;
}

CUresult Stream::check() {
  const CUresult result = driver_->stream_query(stream_);
  if (result == CUDA_ERROR_NOT_READY) return CUDA_SUCCESS;
  if (result != CUDA_SUCCESS) return result;
  reached_ = marked_;
  whole_ = false;
  return CUDA_SUCCESS;
}

}  // namespace gpurdma
