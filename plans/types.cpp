#include "kplan/types.hpp"

#include <algorithm>

namespace kplan {

std::string_view name_of(Scalar s) {
  static constexpr std::string_view names[] = {"bool", "i8",  "i16", "i32", "i64", "u8",  "u16",
                                               "u32",  "u64", "f32", "f64", "c64", "c128"};
  return names[static_cast<int>(s)];
}

const Field* ElementType::find(std::string_view field_name) const {
  const auto it = std::ranges::find(fields, field_name, &Field::name);
  return it == fields.end() ? nullptr : &*it;
}

bool ElementType::operator==(const ElementType& other) const {
  if (is_record() != other.is_record()) return false;
  return is_record() ? fields == other.fields && size_bytes == other.size_bytes : scalar == other.scalar;
}

ElementType record_of(std::vector<std::pair<std::string, Scalar>> fields) {
  ElementType out;
  out.size_bytes = 0;
  std::size_t alignment = 1;
  for (auto& [name, type] : fields) {
    const std::size_t a = alignment_of(type);
    const std::size_t offset = (out.size_bytes + a - 1) / a * a;
    out.fields.push_back({std::move(name), type, offset});
    out.size_bytes = offset + size_of(type);
    alignment = std::max(alignment, a);
  }
  out.size_bytes = (out.size_bytes + alignment - 1) / alignment * alignment;
  return out;
}

}  // namespace kplan
