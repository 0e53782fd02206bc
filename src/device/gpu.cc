#include "device/gpu.h"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "base/clock.h"
#include "base/log.h"
#include "device/pinned.h"

namespace gpurdma {
namespace {

constexpr uint64_t kCheckNs = 10 * 1000 * 1000;  // between two looks whether a GPU that does not answer is well
constexpr size_t kWordDistance = 128;            // bytes, so that no two streams share what a CPU fetches at once

// Nothing works in a context after one of these.
bool sticky(CUresult result) {
  constexpr CUresult kSticky[] = {CUDA_ERROR_ILLEGAL_ADDRESS,      CUDA_ERROR_LAUNCH_FAILED,
                                  CUDA_ERROR_LAUNCH_TIMEOUT,       CUDA_ERROR_ASSERT,
                                  CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_ILLEGAL_INSTRUCTION,
                                  CUDA_ERROR_MISALIGNED_ADDRESS,   CUDA_ERROR_INVALID_ADDRESS_SPACE,
                                  CUDA_ERROR_INVALID_PC,           CUDA_ERROR_ECC_UNCORRECTABLE,
                                  CUDA_ERROR_NVLINK_UNCORRECTABLE, CUDA_ERROR_DEINITIALIZED,
                                  CUDA_ERROR_CONTEXT_IS_DESTROYED};
  return std::find(std::begin(kSticky), std::end(kSticky), result) != std::end(kSticky);
}

size_t words_bytes() { return size_t(sysconf(_SC_PAGESIZE)); }

}  // namespace

Status Gpu::failed(CUresult result, const char* what, ...) {
  char words[160];
  va_list arguments;
  va_start(arguments, what);
  std::vsnprintf(words, sizeof words, what, arguments);
  va_end(arguments);
  const bool lost = sticky(result);
  if (lost && broken_) return Status::gpu;
  broken_ = broken_ || lost;
  GPURDMA_LOG(error, "%s: %s failed: %s%s", name_, words, driver_.text(result),
              lost ? "; this process cannot use that GPU any more" : "");
  return result == CUDA_ERROR_OUT_OF_MEMORY ? Status::no_memory : Status::gpu;
}

Status Gpu::open(bool kernels) {
  if (open_) return broken_ ? Status::gpu : Status::ok;
  char model[64];
  if (driver_.device_get_name(model, sizeof model, context_.device) != CUDA_SUCCESS) std::strcpy(model, "no name");
  std::snprintf(name_, sizeof name_, "GPU %d (%s)", context_.ordinal, model);
  const Entered entered(driver_, context_.handle);
  if (!context_.handle || entered.result() != CUDA_SUCCESS)
    return failed(context_.handle ? entered.result() : CUDA_ERROR_INVALID_CONTEXT, "entering its context");
  const CUresult result = open_streams();
  if (result != CUDA_SUCCESS) {
    close();
    return failed(result, "making streams and pinned memory");
  }
  if (!driver_.ctx_get_id || driver_.ctx_get_id(context_.handle, &context_id_) != CUDA_SUCCESS) context_id_ = kNoId;
  if (kernels) reductions_.open(driver_, context_.device, name_);
  open_ = true;
  GPURDMA_LOG(debug, "%s: streams, memory and kernels are made", name_);
  return Status::ok;
}

CUresult Gpu::open_streams() {
  CUresult result = pin(driver_, words_bytes(), &words_);
  CUdeviceptr on_gpu = 0;
  if (result == CUDA_SUCCESS) result = driver_.mem_host_get_device_pointer(&on_gpu, words_, 0);
  for (size_t i = 0; i < kStreams && result == CUDA_SUCCESS; ++i) {
    auto* const word = new (static_cast<char*>(words_) + i * kWordDistance) std::atomic<uint32_t>(0);
    result = streams_[i].open(driver_, word, on_gpu + i * kWordDistance);
  }
  if (result == CUDA_SUCCESS) result = driver_.event_create(&queued_, CU_EVENT_DISABLE_TIMING);
  return result;
}

// Waits for what is under way, so that the GPU writes to no memory that is given back here.
void Gpu::close() {
  if (!words_) return;
  if (was_reset()) return close_in(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  const Entered entered(driver_, context_.handle);
  close_in(entered.result());
}

void Gpu::close_in(CUresult entered) {
  const bool lives = entered == CUDA_SUCCESS;
  for (Stream& stream : streams_) stream.close(lives);
  if (queued_ && lives) (void)driver_.event_destroy(queued_);
  queued_ = nullptr;
  reductions_.close(lives);
  forgets_memory_ = !lives;
  memory_.clear();
  forgets_memory_ = false;
  unpin(driver_, words_, words_bytes(), entered);
  words_ = nullptr;
  open_ = false;
}

// The context was destroyed since open(), and perhaps made anew at the same address.
bool Gpu::was_reset() const {
  if (context_id_ == kNoId) return false;
  unsigned long long id = kNoId;
  const CUresult result = driver_.ctx_get_id(context_.handle, &id);
  return result == CUDA_SUCCESS ? id != context_id_ : gone(result);
}

bool Gpu::notice_reset(std::vector<EndedWork>* ended) {
  if (!open_ || !was_reset()) return false;
  GPURDMA_LOG(info, "%s: its context was destroyed since it was last used", name_);
  for (Stream& stream : streams_) stream.drain(false);
  fail_all(ended);
  close();
  broken_ = false;
  return true;
}

Status Gpu::begin_gate(bool* done) {
  *done = true;
  const Entered entered(driver_, context_.handle);
  if (entered.result() != CUDA_SUCCESS) return failed(entered.result(), "entering its context");
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = driver_.stream_is_capturing(CU_STREAM_LEGACY, &capture);
  if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || capture != CU_STREAM_CAPTURE_STATUS_NONE) return Status::ok;
  if (result == CUDA_SUCCESS) result = driver_.stream_query(CU_STREAM_LEGACY);
  if (result == CUDA_SUCCESS) return Status::ok;
  if (result == CUDA_ERROR_NOT_READY) {
    result = driver_.event_record(queued_, CU_STREAM_LEGACY);
    if (result == CUDA_SUCCESS) result = driver_.stream_wait_event(streams_[gate].handle(), queued_, 0);
    *done = false;
  }
  if (result != CUDA_SUCCESS) return failed(result, "waiting for the work on the application's default stream");
  return Status::ok;
}

void* Gpu::allocate(size_t bytes) {
  const Entered entered(driver_, context_.handle);
  CUdeviceptr memory = 0;
  if (entered.result() != CUDA_SUCCESS || driver_.mem_alloc(&memory, bytes) != CUDA_SUCCESS) return nullptr;
  return reinterpret_cast<void*>(memory);
}

void Gpu::release(void* chunk, size_t) {
  if (forgets_memory_) return;
  const Entered entered(driver_, context_.handle);
  if (entered.result() == CUDA_SUCCESS) (void)driver_.mem_free(CUdeviceptr(chunk));
}

bool Gpu::busy() const {
  return reductions_.gathered() ||
         std::any_of(std::begin(streams_), std::end(streams_), [](const Stream& stream) { return !stream.idle(); });
}

void Gpu::flush(std::vector<EndedWork>* ended) {
  const bool unmarked =
      std::any_of(std::begin(streams_), std::end(streams_), [](const Stream& stream) { return stream.has_unmarked(); });
  if (!unmarked && !reductions_.gathered()) return;
  const Entered entered(driver_, context_.handle);
  while (reductions_.gathered()) {
    const Reductions::Batch batch = reductions_.next();
    const CUresult result = reductions_.launch(streams_[compute].handle(), batch);
    Status status = Status::ok;
    if (result != CUDA_SUCCESS)
      status = failed(result, "a reduction (%s of %s, %d at once)", name_of(batch.kernel.op),
                      name_of(batch.kernel.type), batch.count);
    for (int i = 0; i < batch.count; ++i) {
      const Reductions::Task& task = batch.tasks[i];
      if (status == Status::ok)
        follow(compute, task.inbox, task.token);
      else
        ended->push_back({task.inbox, task.token, status});
    }
  }
  for (Stream& stream : streams_) stream.mark();
}

bool Gpu::poll(std::vector<EndedWork>* ended) {
  if (broken_) {
    quiesce();
    fail_all(ended);
    return false;
  }
  const uint64_t now = clock::nanoseconds();
  const bool check = next_check_ns_ != 0 && now >= next_check_ns_;
  bool progressed = false, busy = false;
  CUresult result = CUDA_SUCCESS;
  for (int i = 0; i < kStreams && result == CUDA_SUCCESS; ++i) {
    Stream& stream = streams_[i];
    if (stream.idle()) continue;
    if (check || !stream.polls_memory()) {
      const Entered entered(driver_, context_.handle);
      result = entered.result();
      if (result == CUDA_SUCCESS && check) result = stream.check();
      if (result == CUDA_SUCCESS) result = stream.poll();
    } else {
      result = stream.poll();
    }
    std::deque<Waiting>& waiting = waiting_[i];
    while (!waiting.empty() && stream.reached(waiting.front().ticket)) {
      ended->push_back({waiting.front().inbox, waiting.front().token, Status::ok});
      waiting.pop_front();
      progressed = true;
    }
    busy = busy || !stream.idle();
  }
  if (result != CUDA_SUCCESS) {
    (void)failed(result, "work that was under way");
    quiesce();
    fail_all(ended);
  }
  if (!busy)
    next_check_ns_ = 0;
  else if (progressed || check || next_check_ns_ == 0)
    next_check_ns_ = now + kCheckNs;
  return result == CUDA_SUCCESS;
}

// Nothing is told to have failed while the GPU may still read or write what it was about.
void Gpu::quiesce() {
  const Entered entered(driver_, context_.handle);
  for (Stream& stream : streams_) stream.drain(entered.result() == CUDA_SUCCESS);
}

void Gpu::fail_all(std::vector<EndedWork>* ended) {
  while (reductions_.gathered()) {
    const Reductions::Batch batch = reductions_.next();
    for (int i = 0; i < batch.count; ++i) ended->push_back({batch.tasks[i].inbox, batch.tasks[i].token, Status::gpu});
  }
  for (auto& waiting : waiting_) {
    for (const Waiting& w : waiting) ended->push_back({w.inbox, w.token, Status::gpu});
    waiting.clear();
  }
}

}  // namespace gpurdma
