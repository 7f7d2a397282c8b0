#pragma once
// The memory of one rank's buffers, as a program would own it. What lies outside the elements (gaps of strided buffers,
// padding of records, a margin on both sides) holds a known byte, so that stray writes show.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plans/evaluate.hpp"
#include "plans/model.hpp"

namespace kplan::cli {

class BufferMemory {
 public:
  static constexpr std::size_t margin_bytes = 64;
  static constexpr std::byte untouched{0xa5};

  BufferMemory(const Layout& layout, const ElementType& type);

  std::span<std::byte> bytes() { return std::span(storage_).subspan(margin_bytes, storage_.size() - 2 * margin_bytes); }
  std::span<const std::byte> bytes() const {
    return std::span(storage_).subspan(margin_bytes, storage_.size() - 2 * margin_bytes);
  }
  bool are_margins_untouched() const;

 private:
  std::vector<std::byte> storage_;
};

/// Everything one rank holds.
struct RankMemory {
  std::int64_t rank = 0;
  std::vector<ScalarValue> parameters;
  std::vector<Layout> layouts;
  std::vector<BufferMemory> buffers;
};

/// Calls f(indices, offset in elements) for each element in row-major order; stops when f returns false.
template <class F>
void each_element(const Layout& layout, const F& f) {
  std::vector<std::int64_t> at(layout.shape.size(), 0);
  for (std::int64_t k = 0; k < layout.element_count; ++k) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < at.size(); ++d) offset += at[d] * layout.strides[d];
    if (!f(at, offset)) return;
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < layout.shape[d]) break;
      at[d] = 0;
    }
  }
}

/// An element as people read it; records as {a, b}.
std::string element_text(const ElementType& type, const std::byte* element);
/// All elements, row-major, each after a space.
std::string elements_text(const Layout& layout, const ElementType& type, std::span<const std::byte> memory);

/// The first place at which a buffer is not what it should be, or nothing. Padding of records is not looked at.
std::optional<std::string> first_difference(const Buffer& buffer, const RankMemory& mine, std::size_t b,
                                            std::span<const std::byte> expected);

}  // namespace kplan::cli
