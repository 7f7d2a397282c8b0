#pragma once
// Machine code of one kernel as a flat piece of bytes that can lie anywhere: what the code generator hands over and
// what the cache keeps on disk. Code and read-only data are linked to each other already; what depends on where
// they will lie, and where the process's own functions are, is filled in when they are placed.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace kplan::jit {

/// The process's functions that kernels may call, by number.
inline constexpr std::string_view library_functions[] = {"memcpy", "memmove", "memset"};

/// An image: numbers, then eight bytes for each call, four for each pointer, then the code.
class CodeImage {
 public:
  /// 8 bytes of the code that become the address of a library function.
  struct Call {
    std::uint32_t at, function;
  };

  /// Checks the bytes' form; nothing when they are not an image. Keeps a view of them.
  static std::optional<CodeImage> read(std::span<const std::byte> bytes);
  /// The bytes of an image. `pointers` are the places of 8 bytes that hold an offset into the code now, and will hold
  /// that offset's address.
  static std::vector<std::byte> write(std::span<const std::byte> code, std::uint32_t alignment, std::uint32_t entry,
                                      std::span<const Call> calls, std::span<const std::uint32_t> pointers);

  std::size_t code_bytes() const { return code_.size(); }
  /// A power of two, at most 4096.
  std::size_t alignment() const { return alignment_; }
  /// The kernel's function, from the code's begin.
  std::size_t entry() const { return entry_; }

  /// Writes the code to `to`, for being run at `at`.
  void place(std::byte* to, const std::byte* at) const;

 private:
  std::span<const std::byte> calls_, pointers_, code_;
  std::uint32_t alignment_ = 1, entry_ = 0;
};

}  // namespace kplan::jit
