#pragma once
// Where kernels are kept on disk, and whether that place may be used.

#include <string>
#include <utility>

namespace kplan::jit {

/// A file descriptor that is closed when this goes.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();
  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

/// The directory's path: KPLAN_CACHE_DIR, else $XDG_CACHE_HOME/kplan, else $HOME/.cache/kplan; empty when KPLAN_CACHE
/// is off, no variable names one, or the program runs with more rights than its caller.
std::string cache_path();

/// Opens the directory, made if it is not there, if it is this user's and nobody else may write in it; else nothing,
/// and `why_not` says why.
Descriptor open_cache_directory(const std::string& path, std::string& why_not);

}  // namespace kplan::jit
