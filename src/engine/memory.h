// Host memory for scratch and for messages that came early: blocks of a few sizes, kept for the next operation.
//
// Blocks are 64-byte aligned. Up to `keep` bytes of free blocks are kept, the rest goes back to the system at once, so
// the footprint follows what is in flight. Not thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>

namespace gpurdma {

class Memory {
 public:
  // limit: take() beyond that many bytes in use fails.
  explicit Memory(size_t keep, size_t limit = SIZE_MAX) : keep_(keep), limit_(limit) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // At least `bytes` bytes, or nullptr. Cost: a few ns for a kept block, else that of aligned_alloc. bytes == 0 gives
  // nullptr.
  void* take(size_t bytes) {
    if (bytes == 0) return nullptr;
    const int c = class_of(bytes);
    if (c >= kClasses || size_of_class(c) > limit_ - in_use_) return nullptr;
    Free* block = free_[c];
    if (!block) return allocate(c);
    free_[c] = block->next;
    kept_ -= size_of_class(c);
    in_use_ += size_of_class(c);
    return block;
  }
  // `bytes` as it was taken with.
  void give(void* block, size_t bytes) {
    if (!block) return;
    const int c = class_of(bytes);
    in_use_ -= size_of_class(c);
    if (kept_ + size_of_class(c) > keep_) return release(block);
    free_[c] = new (block) Free{free_[c]};
    kept_ += size_of_class(c);
  }

  size_t in_use() const { return in_use_; }
  size_t kept() const { return kept_; }

 private:
  struct Free {
    Free* next;
  };
  static constexpr int kClasses = 48;
  static constexpr size_t kSmallest = 256;  // bytes; class i holds blocks of kSmallest << i

  static int class_of(size_t bytes) { return bytes <= kSmallest ? 0 : 64 - __builtin_clzll((bytes - 1) / kSmallest); }
  static size_t size_of_class(int c) { return kSmallest << c; }
  void* allocate(int c);
  static void release(void* block);

  Free* free_[kClasses] = {};
  size_t keep_, limit_, kept_ = 0, in_use_ = 0;
};

}  // namespace gpurdma
