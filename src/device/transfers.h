// Transfers: copies that are made piece by piece, moved on from progress.
//
// Pageable host memory passes through pinned pieces of ours, some of which fill or drain while others are copied by the
// GPU: a copy of it would otherwise hold up the calling thread. Rows that no single copy of the driver takes go some
// at a time. All copies share a few pieces, which are held for local work only, so that every copy comes to its end.
// One thread at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

#include "device/gpu.h"

namespace gpurdma {

// How rows are copied on a stream.
struct RowCopier {
  Gpu* gpu;
  CUcontext dst_context, src_context;  // of memory that belongs to two contexts; else both nullptr

  // One call of the driver for all of them.
  bool at_once(const GpuCopy& copy) const;
  CUresult submit(CUstream stream, const GpuCopy& copy) const;
};

class Transfers {
 public:
  static constexpr size_t kPieces = 8, kPieceBytes = size_t(256) << 10;

  enum class Through { pieces_to_host, pieces_from_host, rows };
  struct Transfer {
    RowCopier copier;
    Gpu::StreamName stream;
    Through through;
    GpuCopy copy;
    GpuInbox* inbox;
    GpuToken token;
    size_t row = 0, column = 0;  // of what is copied next
    size_t under_way = 0;        // pieces
    Status status = Status::ok;
  };

  // memory: kPieces * kPieceBytes of pinned memory.
  void use(void* memory) { memory_ = static_cast<char*>(memory); }
  bool usable() const { return memory_ != nullptr; }
  void* memory() const { return memory_; }
  void add(const Transfer& transfer) { transfers_.push_back(transfer); }
  // Moves them on; returns whether anything moved.
  bool progress(std::vector<EndedWork>* ended);
  bool idle() const { return transfers_.empty(); }
  // All of that gpu's end as failed.
  void fail(const Gpu* gpu, std::vector<EndedWork>* ended);

 private:
  struct Piece {
    Transfer* transfer = nullptr;  // nullptr: the piece is free
    size_t row, column, rows, width;
    uint32_t ticket;
  };

  char* memory_of(const Piece& piece) { return memory_ + size_t(&piece - pieces_) * kPieceBytes; }
  bool start_piece(Transfer& transfer, Piece& piece);
  void copy_on_host(Piece& piece);

  char* memory_ = nullptr;
  Piece pieces_[kPieces];
  std::list<Transfer> transfers_;
};

}  // namespace gpurdma
