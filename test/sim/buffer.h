// An application's buffer with guard areas, whose address is as little aligned as its elements allow.
#pragma once
#include <algorithm>
#include <cstring>
#include <memory>

namespace gpurdma::sim {

class Buffer {
 public:
  Buffer() = default;
  Buffer(size_t bytes, size_t alignment) : bytes_(bytes), memory_(new char[kAlign + 2 * kGuard + bytes]) {
    char* aligned = memory_.get() + (kAlign - reinterpret_cast<uintptr_t>(memory_.get()) % kAlign);
    begin_ = aligned + kGuard - kAlign + alignment % kAlign;
    std::memset(memory_.get(), kPattern, kAlign + 2 * kGuard + bytes);
  }

  char* data() const { return begin_; }
  size_t bytes() const { return bytes_; }
  bool guards_intact() const {
    const char* end = memory_.get() + kAlign + 2 * kGuard + bytes_;
    const auto intact = [](char c) { return c == kPattern; };
    return std::all_of(memory_.get(), begin_, intact) && std::all_of(begin_ + bytes_, const_cast<char*>(end), intact);
  }

 private:
  static constexpr size_t kAlign = 64, kGuard = 128;
  static constexpr char kPattern = 0x5A;
  size_t bytes_ = 0;
  std::unique_ptr<char[]> memory_;
  char* begin_ = nullptr;
};

}  // namespace gpurdma::sim
