#include "engine/memory.h"

#include <cstdlib>

namespace gpurdma {
namespace {

constexpr size_t kSmallest = 256;  // bytes; class i holds blocks of kSmallest << i

int class_of(size_t bytes) {
  if (bytes <= kSmallest) return 0;
  return 64 - __builtin_clzll((bytes - 1) / kSmallest);
}

size_t size_of_class(int c) { return kSmallest << c; }

}  // namespace

Memory::~Memory() {
  for (Free*& head : free_) {
    while (Free* block = head) {
      head = block->next;
      std::free(block);
    }
  }
}

void* Memory::take(size_t bytes) {
  if (bytes == 0) return nullptr;
  const int c = class_of(bytes);
  if (c >= kClasses) return nullptr;
  const size_t size = size_of_class(c);
  if (size > limit_ - in_use_) return nullptr;
  void* block = free_[c];
  if (block) {
    free_[c] = free_[c]->next;
    kept_ -= size;
  } else {
    block = std::aligned_alloc(64, size);
    if (!block) return nullptr;
  }
  in_use_ += size;
  return block;
}

void Memory::give(void* block, size_t bytes) {
  if (!block) return;
  const int c = class_of(bytes);
  const size_t size = size_of_class(c);
  in_use_ -= size;
  if (kept_ + size > keep_) {
    std::free(block);
    return;
  }
  Free* head = static_cast<Free*>(block);
  head->next = free_[c];
  free_[c] = head;
  kept_ += size;
}

}  // namespace gpurdma
