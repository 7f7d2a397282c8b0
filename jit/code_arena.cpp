// How it works: a region is shared anonymous memory mapped for reading and execution. To place code, the same pages are
// mapped once more (mremap of length 0), that mapping is made writable, filled and taken away again. Regions fill from
// the begin and nothing in them is used twice: bytes that may be running are never written, and a region goes as a
// whole with its last kernel.
#include "jit/code_arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "kplan/error.hpp"

namespace kplan::jit {
namespace {

constexpr std::size_t page_bytes = 64 * 1024;  // the largest of today's machines
constexpr std::size_t region_bytes = page_bytes;
constexpr std::size_t least_alignment = 64;

std::size_t aligned(std::size_t at, std::size_t alignment) { return (at + alignment - 1) / alignment * alignment; }

/// A system call that did not do what it should.
struct Refused {
  const char* call;
  int error;
  bool is_forbidden() const { return error == EACCES || error == EPERM; }
  std::string text() const { return std::string("no executable memory: ") + call + ": " + std::strerror(error); }
};

/// A second, writable mapping of a region's pages, for as long as this lives.
class WritableView {
 public:
  WritableView(std::byte* region, std::size_t bytes) : bytes_(bytes) {
    void* view = mremap(region, 0, bytes, MREMAP_MAYMOVE);
    if (view == MAP_FAILED) throw Refused{"mremap", errno};
    begin = static_cast<std::byte*>(view);
    if (mprotect(view, bytes, PROT_READ | PROT_WRITE) == 0) return;
    const int error = errno;
    munmap(view, bytes);
    throw Refused{"mprotect", error};
  }
  ~WritableView() { munmap(begin, bytes_); }
  WritableView(const WritableView&) = delete;
  WritableView& operator=(const WritableView&) = delete;

  std::byte* begin;

 private:
  std::size_t bytes_;
};

}  // namespace

PlacedCode::PlacedCode(PlacedCode&& other) noexcept
    : region_(std::exchange(other.region_, nullptr)), function_(std::exchange(other.function_, nullptr)) {}

PlacedCode& PlacedCode::operator=(PlacedCode&& other) noexcept {
  std::swap(region_, other.region_);
  std::swap(function_, other.function_);
  return *this;
}

PlacedCode::~PlacedCode() {
  if (region_ != nullptr) CodeArena::instance().release(region_);
}

/// Never destroyed: kernels may outlive every static object.
CodeArena& CodeArena::instance() {
  static auto* const the = new CodeArena;
  return *the;
}

CodeArena::Region& CodeArena::region_for(std::size_t bytes) {
  if (open_ != nullptr && open_->bytes - open_->used >= bytes) return *open_;
  const std::size_t size = aligned(std::max(bytes, region_bytes), page_bytes);
  void* begin = mmap(nullptr, size, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) throw Refused{"mmap", errno};
  Region* full = std::exchange(open_, nullptr);
  if (full != nullptr) forget_if_empty(full);
  open_ = &regions_.emplace_back(Region{static_cast<std::byte*>(begin), size});
  return *open_;
}

std::vector<PlacedCode> CodeArena::place(std::span<const CodeImage> images) {
  std::vector<PlacedCode> out(images.size());
  if (images.empty()) return out;
  std::size_t total = 0, strictest = least_alignment;
  for (const CodeImage& image : images) {
    total = aligned(total, std::max(image.alignment(), least_alignment)) + image.code_bytes();
    strictest = std::max(strictest, image.alignment());
  }
  std::lock_guard lock(mutex_);
  if (!why_not_.empty()) return out;
  try {
    place_in(region_for(total + strictest), images, out);
  } catch (const Refused& refused) {
    if (!refused.is_forbidden()) throw CompilerError("KP-C010", refused.text());
    why_not_ = refused.text();
  }
  return out;
}

void CodeArena::place_in(Region& region, std::span<const CodeImage> images, std::vector<PlacedCode>& out) {
  const WritableView view(region.begin, region.bytes);
  for (std::size_t i = 0; i < images.size(); ++i) {
    const CodeImage& image = images[i];
    region.used = aligned(region.used, std::max(image.alignment(), least_alignment));
    std::byte* at = region.begin + region.used;
    image.place(view.begin + region.used, at);
    __builtin___clear_cache(reinterpret_cast<char*>(at), reinterpret_cast<char*>(at + image.code_bytes()));
    region.used += image.code_bytes();
    ++region.kernels;
    out[i].region_ = &region;
    out[i].function_ = reinterpret_cast<PlacedFunction>(at + image.entry());
  }
}

std::string CodeArena::why_not() {
  std::lock_guard lock(mutex_);
  try {
    if (why_not_.empty()) region_for(1);
  } catch (const Refused& refused) {
    if (refused.is_forbidden()) why_not_ = refused.text();
  }
  return why_not_;
}

void CodeArena::release(void* region) {
  std::lock_guard lock(mutex_);
  auto* from = static_cast<Region*>(region);
  --from->kernels;
  forget_if_empty(from);
}

void CodeArena::forget_if_empty(Region* region) {
  if (region->kernels > 0 || region == open_) return;
  munmap(region->begin, region->bytes);
  regions_.remove_if([&](const Region& r) { return &r == region; });
}

CodeArena::Usage CodeArena::usage() {
  std::lock_guard lock(mutex_);
  Usage out;
  for (const Region& region : regions_) out.bytes += region.bytes;
  out.mappings = regions_.size();
  return out;
}

void CodeArena::before_fork() { mutex_.lock(); }

void CodeArena::after_fork() {
  Region* closed = std::exchange(open_, nullptr);
  if (closed != nullptr) forget_if_empty(closed);
  mutex_.unlock();
}

}  // namespace kplan::jit
