// Pool: memory of ours of one kind, taken and given back in blocks, within a bound.
//
// It is got from the system in chunks, each cut into blocks of one size, of which there are four for every doubling:
// a block wastes less than a quarter. A chunk none of whose blocks is in use may go back. What is known of blocks is
// kept beside them, since the CPU cannot touch memory of a GPU. One thread at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpurdma {

// Where chunks come from. Chunks are at least 256-byte aligned.
class PoolSource {
 public:
  virtual void* allocate(size_t bytes) = 0;  // nullptr: there is none, which is no error
  virtual void release(void* chunk, size_t bytes) = 0;

 protected:
  ~PoolSource() = default;
};

class Pool {
 public:
  Pool(PoolSource& source, size_t limit) : source_(source), limit_(limit) {}
  // All blocks have been given back, or are not used any more.
  ~Pool() { clear(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // nullptr: memory is short. bytes > 0. Cost: some ns where a chunk has a block, else that of the source.
  void* take(size_t bytes);
  // `bytes`: as taken.
  void give(void* block, size_t bytes);
  // Gives back the chunks that were not used at all between this call and the last one.
  void trim();
  // Gives back everything.
  void clear();

  size_t bytes() const { return bytes_; }  // in all chunks
  size_t blocks_in_use() const { return in_use_; }
  // The size of the block that take() gives.
  static size_t block_bytes(size_t bytes);

 private:
  struct Chunk {
    char* memory;
    size_t bytes, block;
    std::vector<uint32_t> free;  // numbers of blocks; the capacity is that of all, so that give() does not allocate
    uint32_t blocks;
    bool used;  // since the last trim()
    bool idle() const { return free.size() == blocks; }
  };

  bool grow(size_t block);
  template <class Condition>
  void release_if(Condition condition);

  PoolSource& source_;
  const size_t limit_;
  size_t bytes_ = 0, in_use_ = 0;
  std::vector<Chunk> chunks_;
};

}  // namespace gpurdma
