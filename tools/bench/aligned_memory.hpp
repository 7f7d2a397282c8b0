#pragma once
// Memory from a page's start, written once so that it is there, of a size that is not known when the program is built.

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace kplan::bench {

class AlignedMemory {
 public:
  static constexpr std::size_t page = 4096;

  AlignedMemory() = default;
  /// Aligned to a huge page it is in huge pages where it can be.
  explicit AlignedMemory(std::size_t bytes, std::size_t alignment = page) : bytes_(bytes) {
    const std::size_t whole = (bytes / alignment + 1) * alignment;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, whole)), std::free);
    if (!data_) throw std::bad_alloc();
    if (alignment > page) madvise(data_.get(), whole, MADV_HUGEPAGE);
    std::memset(data_.get(), 0, bytes);
  }
  /// Memory from elsewhere, such as what an engine has allocated.
  AlignedMemory(std::shared_ptr<std::byte> data, std::size_t bytes) : data_(std::move(data)), bytes_(bytes) {
    std::memset(data_.get(), 0, bytes);
  }
  AlignedMemory(AlignedMemory&&) noexcept = default;
  AlignedMemory& operator=(AlignedMemory&&) noexcept = default;

  std::byte* data() const { return data_.get(); }
  std::size_t size_bytes() const { return bytes_; }
  std::span<std::byte> bytes() const { return {data_.get(), bytes_}; }
  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data_.get()), bytes_ / sizeof(T)};
  }

 private:
  std::shared_ptr<std::byte> data_;
  std::size_t bytes_ = 0;
};

}  // namespace kplan::bench
