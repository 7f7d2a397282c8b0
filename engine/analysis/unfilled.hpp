#pragma once
// Lists whose new elements have no value until they are written: filling long ones with zeros first takes as long as
// writing them.

#include <cstdint>
#include <memory>
#include <vector>

namespace kplan {

template <class T>
struct UnfilledMemory : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = UnfilledMemory<U>;
  };
  void construct(T* p) noexcept { ::new (static_cast<void*>(p)) T; }
  template <class... Args>
  void construct(T* p, Args&&... args) {
    std::construct_at(p, std::forward<Args>(args)...);
  }
};

template <class T>
using Unfilled = std::vector<T, UnfilledMemory<T>>;
using Words = Unfilled<std::int64_t>;

}  // namespace kplan
