#pragma once
// Values as bytes for allgather. All ranks must have the same byte order.

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

}  // namespace kplan::transport
