#include "emu/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "emu/driver.h"

namespace emu {

static char* map(int fd, size_t bytes, int protection) {
  void* const address = mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (address == MAP_FAILED) fail("mapping %zu bytes of device memory: %s", bytes, strerror(errno));
  madvise(address, bytes, MADV_DONTDUMP);
  return static_cast<char*>(address);
}

Arena::Arena(size_t bytes, bool reachable) : bytes_(whole_pages(bytes)) {
  fd_ = memfd_create("gpurdma-emulated-gpu", MFD_CLOEXEC);
  if (fd_ < 0 || ftruncate(fd_, off_t(bytes_)) != 0) fail("memory for an emulated GPU: %s", strerror(errno));
  visible_ = map(fd_, bytes_, reachable ? PROT_READ | PROT_WRITE : PROT_NONE);
  alias_ = map(fd_, bytes_, PROT_READ | PROT_WRITE);
  gaps_[0] = bytes_;
}

bool Arena::take(size_t bytes, size_t* offset) {
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    if (gap->second < bytes) continue;
    *offset = gap->first;
    const size_t left = gap->second - bytes;
    gaps_.erase(gap);
    if (left > 0) gaps_[*offset + bytes] = left;
    return true;
  }
  return false;
}

void Arena::give(size_t offset, size_t bytes) {
  fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(offset), off_t(bytes));
  const auto behind = gaps_.find(offset + bytes);
  if (behind != gaps_.end()) {
    bytes += behind->second;
    gaps_.erase(behind);
  }
  auto before = gaps_.lower_bound(offset);
  if (before != gaps_.begin() && (--before)->first + before->second == offset)
    before->second += bytes;
  else
    gaps_[offset] = bytes;
}

}  // namespace emu
