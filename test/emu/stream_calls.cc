// The driver's functions on streams, but for capture and events.
#include <time.h>

#include "emu/capture.h"
#include "emu/context.h"
#include "emu/stream.h"

using namespace emu;

extern "C" CUresult emu_cuStreamCreateWithPriority(CUstream* handle, unsigned flags, int priority) {
  return enter("cuStreamCreate", [&](Lock&) {
    CUresult result;
    Context* const context = need_context("cuStreamCreate", &result);
    if (context == nullptr) return result;
    if ((flags & ~unsigned(CU_STREAM_NON_BLOCKING)) != 0) return CUDA_ERROR_INVALID_VALUE;
    context->streams.push_back(make_stream(context, flags, priority));
    Stream* const stream = context->streams.back().get();
    stream->id = driver().next_id();
    *handle = stream->handle();
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuStreamCreate(CUstream* handle, unsigned flags) {
  return emu_cuStreamCreateWithPriority(handle, flags, 0);
}

// What is queued is still done.
extern "C" CUresult emu_cuStreamDestroy_v2(CUstream handle) {
  return enter("cuStreamDestroy", [&](Lock&) {
    CUresult result;
    Stream* const stream = stream_of(handle, "cuStreamDestroy", &result);
    if (stream == nullptr) return result;
    if (stream->id == 0) return misuse(CUDA_ERROR_INVALID_HANDLE, "cuStreamDestroy: of a default stream");
    if (stream->capture != nullptr)
      return misuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "cuStreamDestroy: it captures");
    stream->alive = false;
    stream->wake.notify_one();
    forget_ended_streams(stream->context);
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuStreamQuery(CUstream handle) {
  return enter("cuStreamQuery", [&](Lock&) {
    CUresult result;
    Stream* const stream = stream_of(handle, "cuStreamQuery", &result);
    if (stream == nullptr) return result;
    if ((result = asked_while_capturing(stream, "cuStreamQuery")) != CUDA_SUCCESS) return result;
    if (stream->context->sticky != CUDA_SUCCESS) return stream->context->sticky;
    return is_idle(*stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

extern "C" CUresult emu_cuStreamSynchronize(CUstream handle) {
  return enter("cuStreamSynchronize", [&](Lock& lock) {
    CUresult result;
    Stream* const stream = stream_of(handle, "cuStreamSynchronize", &result);
    if (stream == nullptr) return result;
    if ((result = asked_while_capturing(stream, "cuStreamSynchronize")) != CUDA_SUCCESS) return result;
    wait_for_stream(stream, lock);
    return stream->context->sticky;
  });
}

extern "C" CUresult emu_cuStreamGetFlags(CUstream handle, unsigned* flags) {
  return enter("cuStreamGetFlags", [&](Lock&) {
    CUresult result;
    const Stream* const stream = stream_of(handle, "cuStreamGetFlags", &result);
    if (stream != nullptr) *flags = stream->flags;
    return result;
  });
}

extern "C" CUresult emu_cuStreamGetPriority(CUstream handle, int* priority) {
  return enter("cuStreamGetPriority", [&](Lock&) {
    CUresult result;
    const Stream* const stream = stream_of(handle, "cuStreamGetPriority", &result);
    if (stream != nullptr) *priority = stream->priority;
    return result;
  });
}

extern "C" CUresult emu_cuStreamGetId(CUstream handle, unsigned long long* id) {
  return enter("cuStreamGetId", [&](Lock&) {
    CUresult result;
    const Stream* const stream = stream_of(handle, "cuStreamGetId", &result);
    if (stream != nullptr) *id = stream->id;
    return result;
  });
}

extern "C" CUresult emu_cuStreamGetCtx(CUstream handle, CUcontext* context) {
  return enter("cuStreamGetCtx", [&](Lock&) {
    CUresult result;
    const Stream* const stream = stream_of(handle, "cuStreamGetCtx", &result);
    if (stream != nullptr) *context = stream->context->handle();
    return result;
  });
}

extern "C" CUresult emu_cuLaunchHostFunc(CUstream handle, CUhostFn function, void* argument) {
  return enter("cuLaunchHostFunc", [&](Lock&) {
    CUresult result;
    Stream* const stream = stream_of(handle, "cuLaunchHostFunc", &result);
    if (stream == nullptr) return result;
    return submit(
        stream,
        [function, argument] {
          in_host_function = true;
          function(argument);
          in_host_function = false;
        },
        "cuLaunchHostFunc");
  });
}

extern "C" CUresult emu_cuStreamAddCallback(CUstream handle, CUstreamCallback function, void* argument, unsigned) {
  return enter("cuStreamAddCallback", [&](Lock&) {
    CUresult result;
    Stream* const stream = stream_of(handle, "cuStreamAddCallback", &result);
    if (stream == nullptr) return result;
    if (stream->capture != nullptr) return asked_while_capturing(stream, "cuStreamAddCallback");
    return submit(
        stream,
        [handle, function, argument] {
          in_host_function = true;
          function(handle, CUDA_SUCCESS, argument);
          in_host_function = false;
        },
        "cuStreamAddCallback");
  });
}

namespace {

// Writes a value behind all that the stream did before it; kernels, copies and the CPU see that order.
template <typename Value>
CUresult write_value(CUstream handle, CUdeviceptr address, Value value, const char* function) {
  return enter(function, [&](Lock&) {
    CUresult result;
    Stream* const stream = stream_of(handle, function, &result);
    if (stream == nullptr) return result;
    const Place place = place_of(address, sizeof value, function, &result);
    if (result != CUDA_SUCCESS) return result;
    if (place.memory == nullptr || address % sizeof value != 0)
      return misuse(CUDA_ERROR_INVALID_VALUE, "%s: %#zx is not memory of the GPU, or not aligned", function,
                    size_t(address));
    return submit(
        stream, [place, value] { __atomic_store_n(reinterpret_cast<Value*>(place.data), value, __ATOMIC_RELEASE); },
        function);
  });
}

template <typename Value>
bool is_met(Value now, Value value, unsigned condition) {
  switch (condition & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return std::make_signed_t<Value>(now - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return now == value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (now & value) != 0;
    default:
      return Value(~(now | value)) != 0;
  }
}

template <typename Value>
CUresult wait_value(CUstream handle, CUdeviceptr address, Value value, unsigned flags, const char* function) {
  return enter(function, [&](Lock&) {
    CUresult result;
    Stream* const stream = stream_of(handle, function, &result);
    if (stream == nullptr) return result;
    const Place place = place_of(address, sizeof value, function, &result);
    if (result != CUDA_SUCCESS) return result;
    if (place.memory == nullptr) return misuse(CUDA_ERROR_INVALID_VALUE, "%s: not memory of the GPU", function);
    return submit(
        stream,
        [place, value, flags] {
          const timespec pause = {0, 20000};
          while (!is_met(__atomic_load_n(reinterpret_cast<Value*>(place.data), __ATOMIC_ACQUIRE), value, flags))
            nanosleep(&pause, nullptr);
        },
        function);
  });
}

}  // namespace

extern "C" CUresult emu_cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned) {
  return write_value<uint32_t>(stream, address, value, "cuStreamWriteValue32");
}

extern "C" CUresult emu_cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned) {
  return write_value<uint64_t>(stream, address, value, "cuStreamWriteValue64");
}

extern "C" CUresult emu_cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return wait_value<uint32_t>(stream, address, value, flags, "cuStreamWaitValue32");
}

extern "C" CUresult emu_cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return wait_value<uint64_t>(stream, address, value, flags, "cuStreamWaitValue64");
}
