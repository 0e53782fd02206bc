#include "device/transfers.h"

#include <algorithm>
#include <cstring>

namespace gpurdma {
namespace {

constexpr size_t kRowsAtOnce = 64;                    // of those that are submitted one by one
constexpr size_t kMostPitch = (size_t(1) << 31) - 1;  // of a copy of rows, in the driver
constexpr int kHostCopies = 4;                        // pieces that one call of progress copies on the CPU

}  // namespace

bool RowCopier::at_once(const GpuCopy& c) const {
  if (c.rows == 1) return true;
  return !dst_context && c.dst_pitch >= c.width && c.src_pitch >= c.width && c.dst_pitch <= kMostPitch &&
         c.src_pitch <= kMostPitch;
}

CUresult RowCopier::submit(CUstream stream, const GpuCopy& c) const {
  const Driver& driver = gpu->driver();
  if (c.rows > 1 && at_once(c)) {
    CUDA_MEMCPY2D rows{};
    rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    rows.srcDevice = CUdeviceptr(c.src);
    rows.dstDevice = CUdeviceptr(c.dst);
    rows.srcPitch = c.src_pitch;
    rows.dstPitch = c.dst_pitch;
    rows.WidthInBytes = c.width;
    rows.Height = c.rows;
    return driver.memcpy_2d_async(&rows, stream);
  }
  for (size_t row = 0; row < c.rows; ++row) {
    const CUdeviceptr dst = CUdeviceptr(c.dst) + row * c.dst_pitch, src = CUdeviceptr(c.src) + row * c.src_pitch;
    const CUresult result = dst_context ? driver.memcpy_peer_async(dst, dst_context, src, src_context, c.width, stream)
                                        : driver.memcpy_async(dst, src, c.width, stream);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

bool Transfers::progress(std::vector<EndedWork>* ended) {
  bool moved = false;
  int host_copies = 0;
  for (Piece& piece : pieces_) {
    if (!piece.transfer || host_copies == kHostCopies) continue;
    Transfer& transfer = *piece.transfer;
    if (!transfer.copier.gpu->stream(transfer.stream).reached(piece.ticket)) continue;
    if (transfer.through == Through::pieces_to_host) {
      copy_on_host(piece);
      ++host_copies;
    }
    piece.transfer = nullptr;
    --transfer.under_way;
    moved = true;
  }
  // Each in turn starts a piece, until there is none to be had.
  for (bool started = true; started && host_copies < kHostCopies;) {
    started = false;
    for (Transfer& transfer : transfers_) {
      if (transfer.status != Status::ok || transfer.row == transfer.copy.rows) continue;
      Piece* const free =
          std::find_if(std::begin(pieces_), std::end(pieces_), [](const Piece& piece) { return !piece.transfer; });
      if (free == std::end(pieces_) || host_copies == kHostCopies) break;
      if (start_piece(transfer, *free)) started = moved = true;
      if (transfer.through == Through::pieces_from_host) ++host_copies;
    }
  }
  for (auto t = transfers_.begin(); t != transfers_.end();) {
    if (t->under_way == 0 && (t->status != Status::ok || t->row == t->copy.rows)) {
      ended->push_back({t->inbox, t->token, t->status});
      t = transfers_.erase(t);
      moved = true;
    } else {
      ++t;
    }
  }
  return moved;
}

// What fits a piece: some rows, or a part of one.
bool Transfers::start_piece(Transfer& t, Piece& piece) {
  const GpuCopy& c = t.copy;
  const bool straight = t.through == Through::rows;
  piece.row = t.row;
  piece.column = t.column;
  piece.width = straight ? c.width : std::min(c.width - t.column, kPieceBytes);
  piece.rows = straight ? std::min(kRowsAtOnce, c.rows - t.row)
               : piece.width < c.width
                   ? 1
                   : std::min(c.rows - t.row, c.width == 0 ? c.rows : std::max<size_t>(kPieceBytes / c.width, 1));
  GpuCopy part{static_cast<char*>(c.dst) + piece.row * c.dst_pitch + piece.column,
               static_cast<const char*>(c.src) + piece.row * c.src_pitch + piece.column,
               piece.width,
               piece.rows,
               c.dst_pitch,
               c.src_pitch};
  piece.transfer = &t;
  if (t.through == Through::pieces_from_host) {
    copy_on_host(piece);
    part.src = memory_of(piece);
    part.src_pitch = piece.width;
  } else if (t.through == Through::pieces_to_host) {
    part.dst = memory_of(piece);
    part.dst_pitch = piece.width;
  }
  Gpu& gpu = *t.copier.gpu;
  Stream& stream = gpu.stream(t.stream);
  const Entered entered(gpu.driver(), gpu.context());
  CUresult result = entered.result();
  if (result == CUDA_SUCCESS) result = t.copier.submit(stream.handle(), part);
  // Even where it failed, some rows may be under way.
  piece.ticket = stream.ticket();
  stream.mark();
  ++t.under_way;
  t.column += piece.width;
  if (t.column >= c.width) {
    t.column = 0;
    t.row += piece.rows;
  }
  if (result == CUDA_SUCCESS) return true;
  t.status = gpu.failed(result, "a copy of %zu rows of %zu bytes", part.rows, part.width);
  return false;
}

// Between the piece and the pageable memory.
void Transfers::copy_on_host(Piece& piece) {
  const GpuCopy& c = piece.transfer->copy;
  const bool to_host = piece.transfer->through == Through::pieces_to_host;
  if (piece.transfer->status != Status::ok && to_host) return;
  char* memory = memory_of(piece);
  for (size_t row = piece.row; row < piece.row + piece.rows; ++row, memory += piece.width) {
    if (to_host)
      std::memcpy(static_cast<char*>(c.dst) + row * c.dst_pitch + piece.column, memory, piece.width);
    else
      std::memcpy(memory, static_cast<const char*>(c.src) + row * c.src_pitch + piece.column, piece.width);
  }
}

void Transfers::fail(const Gpu* gpu, std::vector<EndedWork>* ended) {
  for (Piece& piece : pieces_) {
    if (piece.transfer && piece.transfer->copier.gpu == gpu) piece.transfer = nullptr;
  }
  for (auto t = transfers_.begin(); t != transfers_.end();) {
    if (t->copier.gpu != gpu) {
      ++t;
      continue;
    }
    ended->push_back({t->inbox, t->token, Status::gpu});
    t = transfers_.erase(t);
  }
}

}  // namespace gpurdma
