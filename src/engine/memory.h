// Host memory for scratch and for messages that came early: blocks of a few sizes, kept for the next operation.
//
// Blocks are 64-byte aligned. Up to `keep` bytes of free blocks are kept, the rest goes back to the system at once, so the footprint
// follows what is in flight. Not thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gpurdma {

class Memory {
 public:
  // limit: take() beyond that many bytes in use fails.
  explicit Memory(size_t keep, size_t limit = SIZE_MAX) : keep_(keep), limit_(limit) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // At least `bytes` bytes, or nullptr. Cost: some 5 ns for a kept block, else that of aligned_alloc. bytes == 0 gives nullptr.
  void* take(size_t bytes);
  void give(void* block, size_t bytes);  // the `bytes` it was taken with

  size_t in_use() const { return in_use_; }
  size_t kept() const { return kept_; }

 private:
  struct Free {
    Free* next;
  };
  static constexpr int kClasses = 48;

  Free* free_[kClasses] = {};
  size_t keep_, limit_, kept_ = 0, in_use_ = 0;
};

}  // namespace gpurdma
