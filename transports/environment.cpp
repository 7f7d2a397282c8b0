// How it works: the whole variable must be one decimal number; what does not fit a nanosecond clock is refused
// rather than clipped, so that a typing slip cannot turn the limit off.
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "kplan/transport.hpp"
#include "transports/codes.hpp"

namespace kplan::transport {

std::chrono::nanoseconds timeout_from_environment() {
  const char* text = std::getenv("KPLAN_TIMEOUT");
  if (text == nullptr) return std::chrono::seconds(60);
  const std::string_view value(text);
  constexpr double longest_seconds = 1e9;  // some 31 years; sums with the clock stay far from overflow
  double seconds = 0;
  const auto [end, status] =
      std::from_chars(value.data(), value.data() + value.size(), seconds, std::chars_format::fixed);
  const bool is_number = status == std::errc() && end == value.data() + value.size() && std::isfinite(seconds);
  if (!is_number || seconds < 1e-9 || seconds > longest_seconds) {
    throw PlanError(codes::bad_timeout,
                    "the environment variable KPLAN_TIMEOUT is `" + std::string(value) +
                        "`, which is not a number of seconds above 0 and up to 1000000000; set it to "
                        "a decimal number such as 60 or 0.5, or unset it for 60 s");
  }
  return std::chrono::nanoseconds(std::llround(seconds * 1e9));
}

bool node_path_from_environment() {
  const char* text = std::getenv("KPLAN_NODE");
  if (text == nullptr || std::string_view(text) == "on") return true;
  if (std::string_view(text) == "off") return false;
  throw PlanError(codes::bad_node, "the environment variable KPLAN_NODE is `" + std::string(text) +
                                       "`; set it to `on` or `off`, or unset it for `on`");
}

std::size_t piece_bytes_from_environment() {
  const char* text = std::getenv("KPLAN_PIECE_BYTES");
  if (text == nullptr) return 32768;
  const std::string_view value(text);
  std::size_t bytes = 0;
  const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), bytes);
  if (status == std::errc() && end == value.data() + value.size() && bytes <= std::size_t{1} << 30) return bytes;
  throw PlanError(codes::bad_piece, "the environment variable KPLAN_PIECE_BYTES is `" + std::string(value) +
                                        "`; set it to a number of bytes from 1 to 1073741824, to 0 to send messages "
                                        "whole, or unset it for 32768");
}

}  // namespace kplan::transport
