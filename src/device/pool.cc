#include "device/pool.h"

#include <algorithm>

namespace gpurdma {
namespace {

constexpr size_t kSmallest = 256;  // bytes of a block

// For blocks of that size. 2 MiB is what a GPU maps at once.
size_t chunk_bytes(size_t block) {
  return std::max(block, std::min(size_t(2) << 20, std::max(size_t(64) << 10, 16 * block)));
}

}  // namespace

size_t Pool::block_bytes(size_t bytes) {
  size_t step = kSmallest;
  while (bytes > 8 * step) step *= 2;
  return (bytes + step - 1) / step * step;
}

void* Pool::take(size_t bytes) {
  const size_t block = block_bytes(bytes);
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (Chunk& chunk : chunks_) {
      if (chunk.block != block || chunk.free.empty()) continue;
      const size_t number = chunk.free.back();
      chunk.free.pop_back();
      chunk.used = true;
      ++in_use_;
      return chunk.memory + number * block;
    }
    if (attempt == 0 && !grow(block)) return nullptr;
  }
  return nullptr;
}

void Pool::give(void* block, size_t bytes) {
  (void)bytes;
  for (Chunk& chunk : chunks_) {
    const size_t at = reinterpret_cast<uintptr_t>(block) - reinterpret_cast<uintptr_t>(chunk.memory);
    if (at >= chunk.bytes) continue;
    chunk.free.push_back(uint32_t(at / chunk.block));
    --in_use_;
    return;
  }
}

// A chunk for blocks of this size. Where the bound does not allow one of the usual size it is as large as it may be.
bool Pool::grow(size_t block) {
  if (block > limit_) return false;
  if (chunk_bytes(block) > limit_ - bytes_) release_if([](const Chunk& chunk) { return chunk.idle(); });
  const size_t room = std::min(chunk_bytes(block), limit_ - bytes_);
  if (room < block) return false;
  const size_t blocks = room / block;
  std::vector<uint32_t> free(blocks);
  chunks_.reserve(chunks_.size() + 1);
  char* const memory = static_cast<char*>(source_.allocate(blocks * block));
  if (!memory) return false;
  for (size_t i = 0; i < blocks; ++i) free[i] = uint32_t(blocks - 1 - i);
  chunks_.push_back({memory, blocks * block, block, std::move(free), uint32_t(blocks), true});
  bytes_ += blocks * block;
  return true;
}

template <class Condition>
void Pool::release_if(Condition condition) {
  for (size_t i = chunks_.size(); i-- > 0;) {
    if (!condition(chunks_[i])) continue;
    bytes_ -= chunks_[i].bytes;
    source_.release(chunks_[i].memory, chunks_[i].bytes);
    chunks_.erase(chunks_.begin() + ptrdiff_t(i));
  }
}

void Pool::trim() {
  release_if([](const Chunk& chunk) { return chunk.idle() && !chunk.used; });
  for (Chunk& chunk : chunks_) chunk.used = !chunk.idle();
}

void Pool::clear() {
  release_if([](const Chunk&) { return true; });
  in_use_ = 0;
}

}  // namespace gpurdma
