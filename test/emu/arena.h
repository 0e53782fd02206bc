// The memory of one device: a memfd mapped twice, once where the program sees it, out of the CPU's reach, and once
// where the emulator reaches it. Pages are taken from it and given back; the file lets other processes map them too.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>

namespace emu {

constexpr size_t kPage = 4096;
inline size_t whole_pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

class Arena {
 public:
  // Maps it; ends the process where the system refuses.
  Arena(size_t bytes, bool reachable);

  // A range of the file. False: there is no such gap.
  bool take(size_t bytes, size_t* offset);
  void give(size_t offset, size_t bytes);

  int fd() const { return fd_; }
  char* visible(size_t offset) const { return visible_ + offset; }
  char* alias(size_t offset) const { return alias_ + offset; }
  size_t offset(const void* visible) const { return size_t(static_cast<const char*>(visible) - visible_); }
  bool holds(uintptr_t address) const { return address - reinterpret_cast<uintptr_t>(visible_) < bytes_; }

 private:
  size_t bytes_;
  int fd_;
  char* visible_;
  char* alias_;
  std::map<size_t, size_t> gaps_;  // offset: bytes
};

}  // namespace emu
