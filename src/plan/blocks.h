// Blocks: which elements of a vector each place is responsible for; and pieces, the parts of a block that are sent.
#pragma once
#include <algorithm>
#include <cstddef>

namespace gpurdma {

// Elements [at, at + count) cut into `blocks` consecutive blocks whose sizes differ by at most one, larger ones first.
// With fewer elements than blocks the last ones are empty, as are all behind the last. Algorithms ask for at(i) and
// size(i) only, so that uneven variants are the same code with other blocks.
class Blocks {
 public:
  Blocks(size_t at, size_t count, int blocks)
      : at_(at), size_(count / blocks), larger_(count % blocks), blocks_(blocks) {}

  size_t at(int i) const {
    i = std::min(i, blocks_);
    return at_ + i * size_ + std::min<size_t>(i, larger_);
  }
  size_t size(int i) const { return i < blocks_ ? size_ + (static_cast<size_t>(i) < larger_) : 0; }
  size_t largest() const { return size_ + (larger_ > 0); }

 private:
  size_t at_, size_, larger_;
  int blocks_;
};

// Calls f(at, n) for consecutive parts of [at, at + count) of at most `piece` elements; not at all when count is 0.
template <class F>
void for_pieces(size_t at, size_t count, size_t piece, F f) {
  for (size_t done = 0; done < count; done += piece) f(at + done, std::min(piece, count - done));
}

template <class F>
void for_pieces(const Blocks& blocks, int i, size_t piece, F f) {
  for_pieces(blocks.at(i), blocks.size(i), piece, f);
}

}  // namespace gpurdma
