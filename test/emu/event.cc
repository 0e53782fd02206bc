#include "emu/event.h"

#include <chrono>

#include "emu/capture.h"
#include "emu/context.h"

namespace emu {

namespace {

Handles<Event>& events() {
  static auto* const events = new Handles<Event>;
  return *events;
}

Event* event_of(CUevent handle, const char* function, CUresult* result) {
  Event* const event = events().find(handle);
  if (event == nullptr || !event->alive) {
    *result = misuse(CUDA_ERROR_INVALID_HANDLE, "%s: %p is no event, or was destroyed", function, (void*)handle);
    return nullptr;
  }
  *result = CUDA_SUCCESS;
  return event;
}

double now_ms() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

CUresult record(CUevent handle, CUstream stream_handle, const char* function) {
  CUresult result;
  Event* const event = event_of(handle, function, &result);
  if (event == nullptr) return result;
  Stream* const stream = stream_of(stream_handle, function, &result);
  if (stream == nullptr) return result;
  if (event->context != stream->context)
    return misuse(CUDA_ERROR_INVALID_HANDLE, "%s: event and stream are of different contexts", function);
  if (stream->capture != nullptr) return capture_record(stream, event);
  auto time = std::make_shared<double>(0);
  std::shared_ptr<Work> work;
  result = submit(
      stream, [time] { *time = now_ms(); }, function, {}, &work);
  if (result != CUDA_SUCCESS) return result;
  event->recorded = std::move(work);
  event->time_ms = std::move(time);
  event->captured = nullptr;
  return CUDA_SUCCESS;
}

}  // namespace

void end_events(Context* context) {
  for (const auto& [handle, event] : events().all())
    if (event->context == context) event->alive = false;
}

size_t living_events() {
  size_t living = 0;
  for (const auto& [handle, event] : events().all()) living += event->alive ? 1 : 0;
  return living;
}

}  // namespace emu

using namespace emu;

extern "C" CUresult emu_cuEventCreate(CUevent* handle, unsigned flags) {
  return enter("cuEventCreate", [&](Lock&) {
    CUresult result;
    Context* const context = need_context("cuEventCreate", &result);
    if (context == nullptr) return result;
    if ((flags & ~7u) != 0) return CUDA_ERROR_INVALID_VALUE;
    auto event = std::make_shared<Event>();
    event->context = context;
    event->flags = flags;
    *handle = events().add(std::move(event))->handle();
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuEventDestroy_v2(CUevent handle) {
  return enter("cuEventDestroy", [&](Lock&) {
    CUresult result;
    Event* const event = event_of(handle, "cuEventDestroy", &result);
    if (event == nullptr) return result;
    event->alive = false;
    event->recorded = nullptr;
    event->captured = nullptr;
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuEventRecord(CUevent event, CUstream stream) {
  return enter("cuEventRecord", [&](Lock&) { return record(event, stream, "cuEventRecord"); });
}

extern "C" CUresult emu_cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned) {
  return enter("cuEventRecordWithFlags", [&](Lock&) { return record(event, stream, "cuEventRecordWithFlags"); });
}

extern "C" CUresult emu_cuEventQuery(CUevent handle) {
  return enter("cuEventQuery", [&](Lock&) {
    CUresult result;
    const Event* const event = event_of(handle, "cuEventQuery", &result);
    if (event == nullptr) return result;
    if (event->captured != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
    if ((result = unsafe_while_capturing("cuEventQuery")) != CUDA_SUCCESS) return result;
    if (event->context->sticky != CUDA_SUCCESS) return event->context->sticky;
    return event->recorded == nullptr || event->recorded->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

extern "C" CUresult emu_cuEventSynchronize(CUevent handle) {
  return enter("cuEventSynchronize", [&](Lock& lock) {
    CUresult result;
    const Event* const event = event_of(handle, "cuEventSynchronize", &result);
    if (event == nullptr) return result;
    if (event->captured != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
    if ((result = unsafe_while_capturing("cuEventSynchronize")) != CUDA_SUCCESS) return result;
    wait_for(std::shared_ptr<Work>(event->recorded), lock);
    return event->context->sticky;
  });
}

extern "C" CUresult emu_cuEventElapsedTime_v2(float* ms, CUevent start, CUevent end) {
  return enter("cuEventElapsedTime", [&](Lock&) {
    CUresult result;
    const Event* const from = event_of(start, "cuEventElapsedTime", &result);
    if (from == nullptr) return result;
    const Event* const to = event_of(end, "cuEventElapsedTime", &result);
    if (to == nullptr) return result;
    if (((from->flags | to->flags) & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_HANDLE;
    if (from->recorded == nullptr || to->recorded == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!from->recorded->done || !to->recorded->done) return CUDA_ERROR_NOT_READY;
    *ms = float(*to->time_ms - *from->time_ms);
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuEventElapsedTime(float* ms, CUevent start, CUevent end) {
  return emu_cuEventElapsedTime_v2(ms, start, end);
}

extern "C" CUresult emu_cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned) {
  return enter("cuStreamWaitEvent", [&](Lock&) {
    CUresult result;
    Event* const event = event_of(handle, "cuStreamWaitEvent", &result);
    if (event == nullptr) return result;
    Stream* const stream = stream_of(stream_handle, "cuStreamWaitEvent", &result);
    if (stream == nullptr) return result;
    if (stream->capture != nullptr || event->captured != nullptr) return capture_wait(stream, event);
    if (event->recorded == nullptr) return CUDA_SUCCESS;
    return submit(stream, nullptr, "cuStreamWaitEvent", {event->recorded});
  });
}
