#include "engine/memory.h"

#include <cstdlib>

namespace gpurdma {
Memory::~Memory() {
  for (Free*& head : free_) {
    while (Free* block = head) {
      head = block->next;
      std::free(block);
    }
  }
}

void* Memory::allocate(int c) {
  void* block = std::aligned_alloc(64, size_of_class(c));
  if (block) in_use_ += size_of_class(c);
  return block;
}

void Memory::release(void* block) { std::free(block); }

}  // namespace gpurdma
