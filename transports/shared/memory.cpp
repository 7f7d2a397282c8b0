#include "transports/shared/memory.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>

#include "kplan/transport.hpp"
#include "transports/codes.hpp"
#include "transports/shared/huge_pages.hpp"

namespace kplan::transport {

std::shared_ptr<std::byte> zeroed_memory(std::size_t bytes) {
  constexpr std::size_t least_mapped = std::size_t{1} << 16;
  if (bytes > SIZE_MAX / 4) throw std::bad_alloc();
  if (bytes < least_mapped) {
    constexpr std::align_val_t alignment{64};
    void* const data = ::operator new(bytes, alignment);
    std::memset(data, 0, bytes);
    return {static_cast<std::byte*>(data), [](std::byte* memory) { ::operator delete(memory, alignment); }};
  }
  const bool is_huge = bytes >= least_for_huge_pages;
  const std::size_t mapped = is_huge ? bytes + huge_page_bytes : bytes;
  void* const data = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    throw TransportError(codes::cannot_open,
                         "cannot allocate " + std::to_string(bytes) + " bytes: " + std::strerror(errno));
  auto first = reinterpret_cast<std::uintptr_t>(data);
  if (is_huge) {
    (void)madvise(data, mapped, MADV_HUGEPAGE);
    first = (first + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
  }
  return {reinterpret_cast<std::byte*>(first), [data, mapped](std::byte*) { munmap(data, mapped); }};
}

std::shared_ptr<std::byte> Transport::allocate(std::size_t bytes) { return zeroed_memory(bytes); }

}  // namespace kplan::transport
