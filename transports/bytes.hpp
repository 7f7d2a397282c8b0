#pragma once
// Values as bytes for all-gathers and announcements. All ranks must have the same byte order.

#include <cstring>
#include <string>
#include <string_view>

namespace kplan::transport {

/// Adds the value's bytes.
template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Takes them from the front.
template <class T>
T take(std::string_view& in) {
  T out;
  std::memcpy(&out, in.data(), sizeof out);
  in.remove_prefix(sizeof out);
  return out;
}

/// The same with bytes, after their number.
inline void append_sized(std::string& out, std::string_view bytes) {
  append(out, bytes.size());
  out += bytes;
}

/// Those lie in `in`.
inline std::string_view take_sized(std::string_view& in) {
  const auto size = take<std::size_t>(in);
  const std::string_view out = in.substr(0, size);
  in.remove_prefix(size);
  return out;
}

}  // namespace kplan::transport
