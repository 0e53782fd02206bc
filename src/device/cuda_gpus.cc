#include "device/cuda_gpus.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "device/pinned.h"

namespace gpurdma {
namespace {

constexpr size_t kTransferBytes = Transfers::kPieces * Transfers::kPieceBytes;

// How many bytes the rows span, from the first byte to the last.
size_t span(const GpuCopy& copy, size_t pitch) { return (copy.rows - 1) * pitch + copy.width; }

// What kind of memory all of an operand is: pinned only where one registration covers it.
MemoryInfo operand(Contexts& contexts, const void* address, size_t bytes) {
  MemoryInfo memory = contexts.memory(address);
  if (memory.kind != MemoryInfo::Kind::pinned) return memory;
  const MemoryInfo last = contexts.memory(static_cast<const char*>(address) + bytes - 1);
  if (last.kind != MemoryInfo::Kind::pinned || last.buffer != memory.buffer) memory.kind = MemoryInfo::Kind::pageable;
  return memory;
}

}  // namespace

CudaGpus::CudaGpus(const GpuSettings& settings)
    : settings_(settings),
      pinned_(*this, settings.pinned_bytes - std::min(settings.pinned_bytes / 2, kTransferBytes)) {}

CudaGpus::~CudaGpus() {
  if (transfers_.usable()) {
    // Copies under way read and write the pieces.
    for (const auto& gpu : gpus_) {
      if (gpu && gpu->lives()) gpu->quiesce();
    }
    release(transfers_.memory(), kTransferBytes);
  }
  pinned_.clear();
}

Gpu* CudaGpus::opened(GpuId id, Status* status) {
  if (gpus_.size() < contexts_.size()) gpus_.resize(contexts_.size());
  std::unique_ptr<Gpu>& gpu = gpus_[size_t(id)];
  if (!gpu) gpu = std::make_unique<Gpu>(contexts_.driver(), contexts_.at(id), settings_.device_bytes);
  *status = gpu->open(settings_.kernels);
  return *status == Status::ok ? gpu.get() : nullptr;
}

Gpu* CudaGpus::any_opened() {
  for (const auto& gpu : gpus_) {
    if (gpu && gpu->lives()) return gpu.get();
  }
  Status status;
  Gpu* const first = contexts_.size() != 0 ? opened(0, &status) : nullptr;
  return first && first->lives() ? first : nullptr;
}

// Whether the application's queued work is done is asked for first: mostly it is. While it captures a blocking stream
// into a graph the default stream cannot be used, by the application either, and must be left alone.
bool CudaGpus::enter(GpuId id, GpuInbox* inbox, GpuToken token, Status* status) {
  if (size_t(id) < gpus_.size() && gpus_[size_t(id)] && gpus_[size_t(id)]->notice_reset(&ended_))
    transfers_.fail(gpus_[size_t(id)].get(), &ended_);
  Gpu* const gpu = opened(id, status);
  if (!gpu || !settings_.waits_for_default_stream) return true;
  bool done = true;
  *status = gpu->begin_gate(&done);
  if (*status != Status::ok || done) return true;
  gpu->follow(Gpu::gate, inbox, token);
  gpu->flush(&ended_);
  return false;
}

bool CudaGpus::reduces(GpuId id, Op op, Type type) {
  Status status;
  Gpu* const gpu = settings_.kernels ? opened(id, &status) : nullptr;
  if (!gpu) return false;
  const Entered entered(gpu->driver(), gpu->context());
  return entered.result() == CUDA_SUCCESS && gpu->reductions().has(op, type);
}

Status CudaGpus::copy(GpuId id, const GpuCopy& asked, GpuInbox* inbox, GpuToken token) {
  Status status;
  Gpu* const gpu = opened(id, &status);
  if (!gpu) return status;
  if (asked.width == 0 || asked.rows == 0) {
    ended_.push_back({inbox, token, Status::ok});
    return Status::ok;
  }
  GpuCopy copy = asked;
  if (copy.rows > 1 && copy.dst_pitch == copy.width && copy.src_pitch == copy.width)
    copy = {copy.dst, copy.src, copy.width * copy.rows};
  const MemoryInfo dst = operand(contexts_, copy.dst, span(copy, copy.dst_pitch));
  const MemoryInfo src = operand(contexts_, copy.src, span(copy, copy.src_pitch));
  if (dst.kind == MemoryInfo::Kind::unknown || src.kind == MemoryInfo::Kind::unknown) return Status::gpu;
  if (dst.kind == MemoryInfo::Kind::pageable && src.kind == MemoryInfo::Kind::pageable) {
    for (size_t row = 0; row < copy.rows; ++row)
      std::memmove(static_cast<char*>(copy.dst) + row * copy.dst_pitch,
                   static_cast<const char*>(copy.src) + row * copy.src_pitch, copy.width);
    ended_.push_back({inbox, token, Status::ok});
    return Status::ok;
  }

  RowCopier copier{gpu, nullptr, nullptr};
  if (dst.kind == MemoryInfo::Kind::device && src.kind == MemoryInfo::Kind::device && dst.gpu != src.gpu) {
    copier.dst_context = contexts_.at(dst.gpu).handle;
    copier.src_context = contexts_.at(src.gpu).handle;
  }
  const Gpu::StreamName stream = dst.kind != MemoryInfo::Kind::device   ? Gpu::down
                                 : src.kind != MemoryInfo::Kind::device ? Gpu::up
                                                                        : Gpu::across;
  using Through = Transfers::Through;
  const bool pageable = dst.kind == MemoryInfo::Kind::pageable || src.kind == MemoryInfo::Kind::pageable;
  if (!pageable && copier.at_once(copy)) return copy_straight(*gpu, copier, stream, copy, inbox, token);
  if (pageable && (status = open_transfers(*gpu)) != Status::ok) return status;
  const Through through = dst.kind == MemoryInfo::Kind::pageable   ? Through::pieces_to_host
                          : src.kind == MemoryInfo::Kind::pageable ? Through::pieces_from_host
                                                                   : Through::rows;
  transfers_.add({copier, stream, through, copy, inbox, token});
  (void)transfers_.progress(&ended_);
  return Status::ok;
}

Status CudaGpus::copy_straight(Gpu& gpu, const RowCopier& copier, Gpu::StreamName stream, const GpuCopy& copy,
                               GpuInbox* inbox, GpuToken token) {
  const Entered entered(gpu.driver(), gpu.context());
  CUresult result = entered.result();
  if (result == CUDA_SUCCESS) result = copier.submit(gpu.stream(stream).handle(), copy);
  if (result != CUDA_SUCCESS)
    return gpu.failed(result, "a copy of %zu rows of %zu bytes from %p to %p", copy.rows, copy.width, copy.src,
                      copy.dst);
  gpu.follow(stream, inbox, token);
  return Status::ok;
}

// The pieces are made when memory that needs them is first copied.
Status CudaGpus::open_transfers(Gpu& gpu) {
  if (transfers_.usable()) return Status::ok;
  const Entered entered(gpu.driver(), gpu.context());
  void* memory = nullptr;
  CUresult result = entered.result();
  if (result == CUDA_SUCCESS) result = pin(gpu.driver(), kTransferBytes, &memory);
  if (result != CUDA_SUCCESS) return gpu.failed(result, "pinning %zu bytes of host memory", kTransferBytes);
  transfers_.use(memory);
  return Status::ok;
}

Status CudaGpus::reduce(GpuId id, Op op, Type type, void* dst, const void* left, const void* right, size_t count,
                        GpuInbox* inbox, GpuToken token) {
  Status status;
  Gpu* const gpu = opened(id, &status);
  if (!gpu) return status;
  if (count == 0)
    ended_.push_back({inbox, token, Status::ok});
  else if (gpu->reductions().gather(op, type, {{dst, left, right, count}, inbox, token}))
    gpu->flush(&ended_);
  return Status::ok;
}

void CudaGpus::flush() {
  for (const auto& gpu : gpus_) {
    if (gpu && gpu->usable()) gpu->flush(&ended_);
  }
}

int CudaGpus::progress() {
  for (const auto& gpu : gpus_) {
    if (gpu && gpu->busy() && !gpu->poll(&ended_)) transfers_.fail(gpu.get(), &ended_);
  }
  if (!transfers_.idle()) (void)transfers_.progress(&ended_);
  if (ended_.empty()) return 0;
  telling_.clear();
  telling_.swap(ended_);
  for (const EndedWork& ended : telling_) ended.inbox->worked(ended.token, ended.status);
  return int(telling_.size());
}

void* CudaGpus::take_pinned(size_t bytes) { return bytes == 0 ? nullptr : pinned_.take(bytes); }

void CudaGpus::give_pinned(void* block, size_t bytes) {
  if (block) pinned_.give(block, bytes);
}

void* CudaGpus::take(GpuId id, size_t bytes) {
  Status status;
  Gpu* const gpu = bytes == 0 ? nullptr : opened(id, &status);
  return gpu ? gpu->memory().take(bytes) : nullptr;
}

void CudaGpus::give(GpuId id, void* block, size_t bytes) {
  if (block && gpus_[size_t(id)]) gpus_[size_t(id)]->memory().give(block, bytes);
}

void CudaGpus::trim() {
  pinned_.trim();
  for (const auto& gpu : gpus_) {
    if (gpu && gpu->lives()) gpu->memory().trim();
  }
}

void* CudaGpus::allocate(size_t bytes) {
  Gpu* const gpu = any_opened();
  if (!gpu) return nullptr;
  const Entered entered(gpu->driver(), gpu->context());
  void* memory = nullptr;
  if (entered.result() != CUDA_SUCCESS) return nullptr;
  const CUresult result = pin(gpu->driver(), bytes, &memory);
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY)
    (void)gpu->failed(result, "pinning %zu bytes of host memory", bytes);
  return memory;
}

void CudaGpus::release(void* chunk, size_t bytes) {
  Gpu* const gpu = any_opened();
  if (!gpu) return unpin(contexts_.driver(), chunk, bytes, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  const Entered entered(gpu->driver(), gpu->context());
  unpin(gpu->driver(), chunk, bytes, entered.result());
}

const bool kHasCuda = true;

std::unique_ptr<Gpus> open_gpus(const GpuSettings& settings) {
  if (!gpu_present(settings.presence)) return nullptr;
  return std::make_unique<CudaGpus>(settings);
}

}  // namespace gpurdma
