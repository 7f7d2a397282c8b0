#pragma once
// Memory between two pages that fault: a kernel that reaches beyond its streams is caught at once.

#include <sys/mman.h>

#include <cstddef>
#include <stdexcept>

namespace kplan::test {

class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t bytes) : bytes_((bytes + page - 1) / page * page) {
    void* all = mmap(nullptr, bytes_ + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw std::runtime_error("no memory to guard");
    begin_ = static_cast<std::byte*>(all) + page;
    mprotect(begin_, bytes_, PROT_READ | PROT_WRITE);
  }
  ~GuardedMemory() { munmap(begin_ - page, bytes_ + 2 * page); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::size_t size() const { return bytes_; }
  /// `bytes` bytes whose last one, or whose first one, touches a page that faults.
  std::byte* at_end(std::size_t bytes) { return begin_ + bytes_ - bytes; }
  std::byte* at_begin() { return begin_; }

 private:
  static constexpr std::size_t page = 4096;
  std::size_t bytes_;
  std::byte* begin_ = nullptr;
};

}  // namespace kplan::test
