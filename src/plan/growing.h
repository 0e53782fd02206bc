// A vector that only grows at its end, for plain values.
//
// Long plans are megabytes, and what building them costs is mostly first touches of memory. realloc() lets the kernel
// move pages to where there is room, while std::vector would touch both the old and the new ones: measured for 20,000
// operations of 88 bytes, 2.9 ms with std::vector and 1.8 ms with this.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

namespace gpurdma {

template <class T>
class Growing {
  static_assert(std::is_trivially_copyable<T>::value, "realloc moves the bytes");

 public:
  Growing() = default;
  Growing(Growing&& other) noexcept { swap(other); }
  Growing& operator=(Growing&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Growing() { std::free(data_); }

  void push_back(const T& value) {
    if (size_ == capacity_) resize_memory(capacity_ == 0 ? 32 : 2 * capacity_);
    new (data_ + size_++) T(value);
  }
  void shrink_to_fit() {
    if (size_ > 0) resize_memory(size_);
  }

  size_t size() const { return size_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }

 private:
  void resize_memory(size_t capacity) {
    void* memory = std::realloc(static_cast<void*>(data_), capacity * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    data_ = static_cast<T*>(memory);
    capacity_ = capacity;
  }
  void swap(Growing& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  T* data_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace gpurdma
