// Copies and sets of memory.
//
// Source and target are read and written when the work is done, not when it is submitted, but for pageable host memory:
// from it, a copy waits for its stream and reads at once, as a driver does that stages it; to it, the call returns when
// the copy is done. Calls that are not asynchronous use the legacy stream, and wait where the host takes part.
#include <cstring>

#include "emu/capture.h"
#include "emu/context.h"
#include "emu/counts.h"
#include "emu/stream.h"

namespace emu {

namespace {

struct Rows {
  uintptr_t address;
  size_t pitch;
};

// What a function says of its operands.
enum class Where { anywhere, host, device };

struct Copy {
  Rows to, from;
  size_t width, rows;
  Where to_where = Where::anywhere, from_where = Where::anywhere;
};

bool on_gpu(const Place& place) { return place.memory != nullptr && !place.memory->on_host(); }

Place find_operand(const Rows& rows, size_t width, size_t count, Where where, const char* function, CUresult* result) {
  Place place = place_of(rows.address, rows.pitch * (count - 1) + width, function, result);
  if (*result != CUDA_SUCCESS) return place;
  if (where == Where::device && place.memory == nullptr)
    *result = misuse(CUDA_ERROR_INVALID_VALUE, "%s: %#zx is no device memory", function, size_t(rows.address));
  if (where == Where::host && on_gpu(place) && place.memory->kind != Memory::Kind::managed)
    *result = misuse(CUDA_ERROR_INVALID_VALUE, "%s: %#zx is no host memory, but %s", function, size_t(rows.address),
                     describe(rows.address).c_str());
  return place;
}

void copy_rows(char* to, size_t to_pitch, const char* from, size_t from_pitch, size_t width, size_t rows) {
  for (size_t row = 0; row < rows; ++row) memmove(to + row * to_pitch, from + row * from_pitch, width);
}

CUresult copy(const Copy& copy, CUstream handle, bool async, const char* function, Lock& lock) {
  CUresult result;
  if (need_context(function, &result) == nullptr) return result;
  Stream* const stream = stream_of(handle, function, &result);
  if (stream == nullptr) return result;
  if (!async && (result = unsafe_while_capturing(function)) != CUDA_SUCCESS) return result;
  if (copy.width == 0 || copy.rows == 0) return CUDA_SUCCESS;
  const Place to = find_operand(copy.to, copy.width, copy.rows, copy.to_where, function, &result);
  if (result != CUDA_SUCCESS) return result;
  const Place from = find_operand(copy.from, copy.width, copy.rows, copy.from_where, function, &result);
  if (result != CUDA_SUCCESS) return result;
  if (to.data == nullptr || from.data == nullptr)
    return misuse(CUDA_ERROR_INVALID_VALUE, "%s: a NULL address", function);

  const bool capturing = stream->capture != nullptr;
  if (from.memory == nullptr && on_gpu(to) && !capturing) {
    wait_for_stream(stream, lock);
    auto staged = std::make_shared<std::vector<char>>(copy.width * copy.rows);
    copy_rows(staged->data(), copy.width, from.data, copy.from.pitch, copy.width, copy.rows);
    result = submit(
        stream,
        [copy, to, staged] { copy_rows(to.data, copy.to.pitch, staged->data(), copy.width, copy.width, copy.rows); },
        function);
    if (result == CUDA_SUCCESS) count_copy(to.memory.get(), nullptr, copy.width * copy.rows);
    if (result == CUDA_SUCCESS && !async) wait_for_stream(stream, lock);
    return result;
  }
  std::shared_ptr<Work> work;
  result = submit(
      stream,
      [copy, to, from] { copy_rows(to.data, copy.to.pitch, from.data, copy.from.pitch, copy.width, copy.rows); },
      function, {}, &work);
  if (result != CUDA_SUCCESS) return result;
  count_copy(to.memory.get(), from.memory.get(), copy.width * copy.rows);
  const bool within_gpus = on_gpu(to) && on_gpu(from);
  const bool to_pageable = to.memory == nullptr;
  if (to_pageable || (!async && !within_gpus)) wait_for(work, lock);
  return CUDA_SUCCESS;
}

CUresult copy_plain(uintptr_t to, Where to_where, uintptr_t from, Where from_where, size_t bytes, CUstream stream,
                    bool async, const char* function) {
  return enter(function, [&](Lock& lock) {
    return copy({{to, bytes}, {from, bytes}, bytes, 1, to_where, from_where}, stream, async, function, lock);
  });
}

// Where one side of a 2D copy begins. False: arrays.
bool side_of(CUmemorytype type, const void* host, CUdeviceptr device, size_t x, size_t y, size_t pitch, Rows* rows,
             Where* where) {
  if (type == CU_MEMORYTYPE_ARRAY) return false;
  const bool on_host = type == CU_MEMORYTYPE_HOST;
  *where = on_host ? Where::host : type == CU_MEMORYTYPE_DEVICE ? Where::device : Where::anywhere;
  *rows = {(on_host ? reinterpret_cast<uintptr_t>(host) : uintptr_t(device)) + y * pitch + x, pitch};
  return true;
}

CUresult copy_2d(const CUDA_MEMCPY2D* all, CUstream stream, bool async, const char* function) {
  return enter(function, [&](Lock& lock) {
    Copy rows = {};
    rows.width = all->WidthInBytes;
    rows.rows = all->Height;
    if (!side_of(all->dstMemoryType, all->dstHost, all->dstDevice, all->dstXInBytes, all->dstY, all->dstPitch, &rows.to,
                 &rows.to_where) ||
        !side_of(all->srcMemoryType, all->srcHost, all->srcDevice, all->srcXInBytes, all->srcY, all->srcPitch,
                 &rows.from, &rows.from_where))
      return CUDA_ERROR_NOT_SUPPORTED;
    constexpr size_t kMaxPitch = 2147483647;
    for (const size_t pitch : {all->dstPitch, all->srcPitch})
      if (all->Height > 1 && (pitch < all->WidthInBytes || pitch > kMaxPitch))
        return misuse(CUDA_ERROR_INVALID_VALUE, "%s: a pitch of %zu for rows of %zu bytes", function, pitch,
                      all->WidthInBytes);
    return copy(rows, stream, async, function, lock);
  });
}

template <typename Value>
CUresult set(CUdeviceptr address, size_t pitch, Value value, size_t width, size_t rows, CUstream handle,
             const char* function) {
  return enter(function, [&](Lock&) {
    CUresult result;
    if (need_context(function, &result) == nullptr) return result;
    Stream* const stream = stream_of(handle, function, &result);
    if (stream == nullptr) return result;
    if (width == 0 || rows == 0) return CUDA_SUCCESS;
    if (address % sizeof value != 0) return misuse(CUDA_ERROR_INVALID_VALUE, "%s: a misaligned address", function);
    const Place to = find_operand({address, pitch}, width * sizeof value, rows, Where::device, function, &result);
    if (result != CUDA_SUCCESS) return result;
    return submit(
        stream,
        [to, pitch, value, width, rows] {
          for (size_t row = 0; row < rows; ++row)
            for (size_t i = 0; i < width; ++i) memcpy(to.data + row * pitch + i * sizeof value, &value, sizeof value);
        },
        function);
  });
}

}  // namespace

}  // namespace emu

using namespace emu;

static uintptr_t address_of(const void* host) { return reinterpret_cast<uintptr_t>(host); }

extern "C" CUresult emu_cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_plain(to, Where::anywhere, from, Where::anywhere, bytes, nullptr, false, "cuMemcpy");
}

extern "C" CUresult emu_cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_plain(to, Where::anywhere, from, Where::anywhere, bytes, stream, true, "cuMemcpyAsync");
}

extern "C" CUresult emu_cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return copy_plain(to, Where::device, address_of(from), Where::host, bytes, nullptr, false, "cuMemcpyHtoD");
}

extern "C" CUresult emu_cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return copy_plain(to, Where::device, address_of(from), Where::host, bytes, stream, true, "cuMemcpyHtoDAsync");
}

extern "C" CUresult emu_cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return copy_plain(address_of(to), Where::host, from, Where::device, bytes, nullptr, false, "cuMemcpyDtoH");
}

extern "C" CUresult emu_cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_plain(address_of(to), Where::host, from, Where::device, bytes, stream, true, "cuMemcpyDtoHAsync");
}

extern "C" CUresult emu_cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_plain(to, Where::device, from, Where::device, bytes, nullptr, false, "cuMemcpyDtoD");
}

extern "C" CUresult emu_cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_plain(to, Where::device, from, Where::device, bytes, stream, true, "cuMemcpyDtoDAsync");
}

extern "C" CUresult emu_cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes,
                                          CUstream stream) {
  return copy_plain(to, Where::device, from, Where::device, bytes, stream, true, "cuMemcpyPeerAsync");
}

extern "C" CUresult emu_cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes) {
  return copy_plain(to, Where::device, from, Where::device, bytes, nullptr, false, "cuMemcpyPeer");
}

extern "C" CUresult emu_cuMemcpy2D_v2(const CUDA_MEMCPY2D* all) { return copy_2d(all, nullptr, false, "cuMemcpy2D"); }

extern "C" CUresult emu_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* all) {
  return copy_2d(all, nullptr, false, "cuMemcpy2DUnaligned");
}

extern "C" CUresult emu_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* all, CUstream stream) {
  return copy_2d(all, stream, true, "cuMemcpy2DAsync");
}

extern "C" CUresult emu_cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return set(to, 0, value, count, 1, nullptr, "cuMemsetD8");
}

extern "C" CUresult emu_cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return set(to, 0, value, count, 1, stream, "cuMemsetD8Async");
}

extern "C" CUresult emu_cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  return set(to, 0, value, count, 1, nullptr, "cuMemsetD16");
}

extern "C" CUresult emu_cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return set(to, 0, value, count, 1, stream, "cuMemsetD16Async");
}

extern "C" CUresult emu_cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
  return set(to, 0, value, count, 1, nullptr, "cuMemsetD32");
}

extern "C" CUresult emu_cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return set(to, 0, value, count, 1, stream, "cuMemsetD32Async");
}

extern "C" CUresult emu_cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t rows) {
  return set(to, pitch, value, width, rows, nullptr, "cuMemsetD2D8");
}

extern "C" CUresult emu_cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t rows,
                                          CUstream stream) {
  return set(to, pitch, value, width, rows, stream, "cuMemsetD2D8Async");
}
