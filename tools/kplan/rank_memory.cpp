// How it works: comparisons look at the elements first, field by field, because that is what people understand; only
// then at the bytes that belong to no element, and at the margins.
#include "tools/kplan/rank_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tools/kplan/data_document.hpp"

namespace kplan::cli {
namespace {

std::string indices_text(const std::vector<std::int64_t>& at) {
  return at.empty() ? "" : fmt::format("[{}]", fmt::join(at, ","));
}

bool equal_elements(const std::vector<Field>& fields, const std::byte* a, const std::byte* b) {
  return std::ranges::all_of(fields, [&](const Field& f) {
    return std::memcmp(a + f.offset_bytes, b + f.offset_bytes, size_of(f.type)) == 0;
  });
}

/// Bytes that look alike as numbers may still differ: NaNs do.
std::string distinguished(const ElementType& type, const std::byte* element, const std::string& other_text) {
  std::string text = element_text(type, element);
  if (text != other_text) return text;
  text += " (bytes";
  for (std::size_t k = 0; k < type.size_bytes; ++k) text += fmt::format(" {:02x}", static_cast<unsigned>(element[k]));
  return text + ")";
}

}  // namespace

BufferMemory::BufferMemory(const Layout& layout, const ElementType& type)
    : storage_(static_cast<std::size_t>(layout.extent) * type.size_bytes + 2 * margin_bytes, untouched) {}

bool BufferMemory::are_margins_untouched() const {
  const auto is_untouched = [](std::byte b) { return b == untouched; };
  return std::all_of(storage_.begin(), storage_.begin() + margin_bytes, is_untouched) &&
         std::all_of(storage_.end() - margin_bytes, storage_.end(), is_untouched);
}

std::string element_text(const ElementType& type, const std::byte* element) {
  if (!type.is_record()) return to_text(ScalarValue::load(type.scalar, element));
  std::string out = "{";
  for (const Field& f : type.fields)
    out += (out.size() > 1 ? ", " : "") + to_text(ScalarValue::load(f.type, element + f.offset_bytes));
  return out + "}";
}

std::string elements_text(const Layout& layout, const ElementType& type, std::span<const std::byte> memory) {
  std::string out;
  each_element(layout, [&](const auto&, std::int64_t offset) {
    out += " " + element_text(type, memory.data() + static_cast<std::size_t>(offset) * type.size_bytes);
    return true;
  });
  return out;
}

std::optional<std::string> first_difference(const Buffer& buffer, const RankMemory& mine, std::size_t b,
                                            std::span<const std::byte> expected) {
  const Layout& layout = mine.layouts[b];
  const std::span<const std::byte> got = mine.buffers[b].bytes();
  const std::size_t size = buffer.type.size_bytes;
  if (!mine.buffers[b].are_margins_untouched())
    return fmt::format("memory outside buffer {} was written on rank {}", buffer.name, mine.rank);
  if (std::ranges::equal(got, expected)) return std::nullopt;
  const std::vector<Field> fields = fields_of(buffer.type);
  std::optional<std::string> out;
  std::vector<bool> is_element(static_cast<std::size_t>(layout.extent));
  each_element(layout, [&](const auto& at, std::int64_t offset) {
    const std::size_t first = static_cast<std::size_t>(offset) * size;
    is_element[static_cast<std::size_t>(offset)] = true;
    if (equal_elements(fields, got.data() + first, expected.data() + first)) return true;
    const std::string want = element_text(buffer.type, expected.data() + first),
                      have = element_text(buffer.type, got.data() + first);
    out = fmt::format("buffer {} on rank {} differs: {}{} is {}, expected {}", buffer.name, mine.rank, buffer.name,
                      indices_text(at), distinguished(buffer.type, got.data() + first, want),
                      distinguished(buffer.type, expected.data() + first, have));
    return false;
  });
  for (std::size_t k = 0; !out && k < is_element.size(); ++k)
    if (!is_element[k] && std::memcmp(got.data() + k * size, expected.data() + k * size, size) != 0)
      out =
          fmt::format("buffer {} on rank {} differs: memory between its elements, {} bytes from its start, was written",
                      buffer.name, mine.rank, k * size);
  return out;
}

}  // namespace kplan::cli
