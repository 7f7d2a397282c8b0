#pragma once
// Memory from a page's start, written once so that it is there, of a size that is not known when the program is built.

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <utility>

namespace kplan::bench {

class AlignedMemory {
 public:
  static constexpr std::size_t alignment = 4096;

  AlignedMemory() = default;
  explicit AlignedMemory(std::size_t bytes) : bytes_(bytes) {
    data_ = static_cast<std::byte*>(std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment));
    if (data_ == nullptr) throw std::bad_alloc();
    std::memset(data_, 0, bytes);
  }
  AlignedMemory(AlignedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  AlignedMemory& operator=(AlignedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~AlignedMemory() { std::free(data_); }

  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return bytes_; }
  std::span<std::byte> bytes() const { return {data_, bytes_}; }
  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data_), bytes_ / sizeof(T)};
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace kplan::bench
