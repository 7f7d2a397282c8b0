#pragma once
// Executable memory, shared by all kernels of the process: few mappings for many kernels.

#include <cstddef>
#include <list>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "jit/code_image.hpp"

namespace kplan::jit {

class CodeArena;

/// A function in executable memory, of whatever type.
using PlacedFunction = void (*)();

/// A kernel's code in the arena; given back when this goes. It must not be running then.
class PlacedCode {
 public:
  PlacedCode() = default;
  PlacedCode(PlacedCode&& other) noexcept;
  PlacedCode& operator=(PlacedCode&& other) noexcept;
  ~PlacedCode();
  /// Null when there is no code.
  PlacedFunction function() const { return function_; }

 private:
  friend class CodeArena;
  void* region_ = nullptr;
  PlacedFunction function_ = nullptr;
};

/// The process's executable memory. Thread-safe. Memory is never writable and executable at one address, and the
/// addresses at which it is writable are there only while code is being placed.
class CodeArena {
 public:
  static CodeArena& instance();

  /// Places the images next to each other, in their order. Where executable memory is forbidden nothing gets a
  /// function. Throws CompilerError where there is not enough of it.
  std::vector<PlacedCode> place(std::span<const CodeImage> images);
  /// Why executable memory is forbidden; empty when it is not.
  std::string why_not();

  /// Bytes of address space that the arena has now, in how many mappings.
  struct Usage {
    std::size_t bytes = 0, mappings = 0;
  };
  Usage usage();

  /// Around a fork: the two processes share the pages there are, so neither writes to them again.
  void before_fork();
  void after_fork();

 private:
  friend class PlacedCode;
  struct Region {
    std::byte* begin;
    std::size_t bytes;
    std::size_t used = 0;
    std::size_t kernels = 0;  ///< that live here
  };

  CodeArena() = default;
  Region& region_for(std::size_t bytes);
  void place_in(Region& region, std::span<const CodeImage> images, std::vector<PlacedCode>& out);
  void release(void* region);
  void forget_if_empty(Region* region);

  std::mutex mutex_;
  std::list<Region> regions_;
  Region* open_ = nullptr;  ///< the one that the next code goes to
  std::string why_not_;
};

}  // namespace kplan::jit
