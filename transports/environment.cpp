// How it works: the whole variable must be one decimal number; what does not fit a nanosecond clock is refused
// rather than clipped, so that a typing slip cannot turn the limit off.
#include "transports/environment.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "kplan/transport.hpp"
#include "transports/codes.hpp"

namespace kplan::transport {
namespace {

/// `zero`: what 0 stands for.
std::size_t number_from_environment(const char* name, std::size_t otherwise, const char* zero) {
  const char* text = std::getenv(name);
  if (text == nullptr) return otherwise;
  const std::string_view value(text);
  std::size_t number = 0;
  const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (status == std::errc() && end == value.data() + value.size() && number <= std::size_t{1} << 30) return number;
  throw PlanError(codes::bad_number, "the environment variable " + std::string(name) + " is `" + std::string(value) +
                                         "`; set it to a number from 1 to 1073741824, to 0 for " + zero +
                                         ", or unset it for " + std::to_string(otherwise));
}

/// `on` by default, or `off`.
bool is_on(const char* name, const char* code) {
  const char* text = std::getenv(name);
  if (text == nullptr || std::string_view(text) == "on") return true;
  if (std::string_view(text) == "off") return false;
  throw PlanError(code, "the environment variable " + std::string(name) + " is `" + std::string(text) +
                            "`; set it to `on` or `off`, or unset it for `on`");
}

bool is_of_intel() {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel");
#else
  return false;
#endif
}

}  // namespace

std::string variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::chrono::nanoseconds timeout_from_environment() {
  const char* text = std::getenv("KPLAN_TIMEOUT");
  if (text == nullptr) return std::chrono::seconds(60);
  const std::string_view value(text);
  constexpr double longest_seconds = 1e9;  // some 31 years; sums with the clock stay far from overflow
  if (value == "off") return std::chrono::nanoseconds(std::llround(longest_seconds * 1e9));
  double seconds = 0;
  const auto [end, status] =
      std::from_chars(value.data(), value.data() + value.size(), seconds, std::chars_format::fixed);
  const bool is_number = status == std::errc() && end == value.data() + value.size() && std::isfinite(seconds);
  if (!is_number || seconds < 1e-9 || seconds > longest_seconds) {
    throw PlanError(codes::bad_timeout,
                    "the environment variable KPLAN_TIMEOUT is `" + std::string(value) +
                        "`, which is not a number of seconds above 0 and up to 1000000000; set it to "
                        "a decimal number such as 60 or 0.5, to `off` for no limit, or unset it for 60 s");
  }
  return std::chrono::nanoseconds(std::llround(seconds * 1e9));
}

bool node_path_from_environment() { return is_on("KPLAN_NODE", codes::bad_node); }

bool one_sided_from_environment() { return is_on("KPLAN_OFI_ONE_SIDED", codes::bad_provider); }

NativeCollectives native_collectives_from_environment() {
  const char* text = std::getenv("KPLAN_COLLECTIVES");
  const std::string_view value(text == nullptr ? "auto" : text);
  if (value == "auto") return NativeCollectives::where_faster;
  if (value == "native") return NativeCollectives::wherever_possible;
  if (value == "off") return NativeCollectives::off;
  throw PlanError(codes::bad_collectives, "the environment variable KPLAN_COLLECTIVES is `" + std::string(value) +
                                              "`; set it to `auto`, `native` or `off`, or unset it for `auto`");
}

std::size_t piece_bytes_from_environment() {
  return number_from_environment("KPLAN_PIECE_BYTES", 32768, "messages that go whole");
}

std::size_t non_temporal_bytes_from_environment() {
  std::size_t best = 0;  // no processor but those of x86-64 has such stores in copy_to_slot
#if defined(__x86_64__)
  // On those of Intel (Sapphire Rapids), lines that come from memory take longer than from the other core's cache.
  if (!is_of_intel()) best = 512;
#endif
  return number_from_environment("KPLAN_NON_TEMPORAL_BYTES", best, "no message at all");
}

PastCaches past_caches_from_environment() {
  return {number_from_environment("KPLAN_PAST_CACHES_BYTES", 2 << 20, "nothing at all"),
          std::getenv("KPLAN_PAST_CACHES_BYTES") == nullptr, is_of_intel()};
}

std::chrono::nanoseconds far_from_environment() {
  // A line of a core that shares a cache comes in 50 to 90 ns on an EPYC, and in 70 to 150 on a Xeon (Sapphire Rapids).
  return std::chrono::nanoseconds(number_from_environment("KPLAN_FAR_NS", is_of_intel() ? 200 : 120, "any line"));
}

std::size_t lend_bytes_from_environment() {
  return number_from_environment("KPLAN_LEND_BYTES", 2048, "no message at all");
}

std::size_t lend_spread_from_environment() { return number_from_environment("KPLAN_LEND_SPREAD", 4, "any spread"); }

std::size_t fetch_bytes_from_environment() {
  return number_from_environment("KPLAN_FETCH_BYTES", 65536, "no message at all");
}

std::size_t fetch_block_bytes_from_environment() {
  // The system looks pages up and maps them for each block; that takes longer than packing 2 KiB.
  return number_from_environment("KPLAN_FETCH_BLOCK_BYTES", 4096, "any block");
}

std::size_t two_step_bytes_from_environment() {
  return number_from_environment("KPLAN_TWO_STEP_BYTES", 32768, "no message at all");
}

std::size_t place_bytes_from_environment() {
  return number_from_environment("KPLAN_PLACE_BYTES", 16384, "no message at all");
}

std::size_t place_block_bytes_from_environment() {
  return number_from_environment("KPLAN_PLACE_BLOCK_BYTES", 8, "any block");
}

GoingAhead going_ahead_from_environment() {
  // Parts of what MPI takes from its place, or puts there, took 0.45 to 0.8 of the whole on EPYCs, and up to 1.3 times
  // as long on a Xeon (Cascade Lake).
  return {number_from_environment("KPLAN_AHEAD_BYTES", 131072, "messages that go whole"),
          std::getenv("KPLAN_AHEAD_BYTES") != nullptr || !is_of_intel()};
}

std::vector<std::string_view> checked_variables() {
  (void)timeout_from_environment();
  (void)node_path_from_environment();
  (void)native_collectives_from_environment();
  (void)piece_bytes_from_environment();
  (void)non_temporal_bytes_from_environment();
  (void)past_caches_from_environment();
  (void)far_from_environment();
  (void)lend_bytes_from_environment();
  (void)lend_spread_from_environment();
  (void)fetch_bytes_from_environment();
  (void)fetch_block_bytes_from_environment();
  (void)two_step_bytes_from_environment();
  (void)place_bytes_from_environment();
  (void)place_block_bytes_from_environment();
  (void)going_ahead_from_environment();
  (void)one_sided_from_environment();
  return {"KPLAN_TIMEOUT",
          "KPLAN_NODE",
          "KPLAN_COLLECTIVES",
          "KPLAN_PIECE_BYTES",
          "KPLAN_FAR_NS",
          "KPLAN_NON_TEMPORAL_BYTES",
          "KPLAN_LEND_BYTES",
          "KPLAN_LEND_SPREAD",
          "KPLAN_FETCH_BYTES",
          "KPLAN_TWO_STEP_BYTES",
          "KPLAN_PLACE_BYTES",
          "KPLAN_PLACE_BLOCK_BYTES",
          "KPLAN_AHEAD_BYTES",
          "KPLAN_OFI_ONE_SIDED",
          "KPLAN_OFI_PROVIDER",
          "KPLAN_RENDEZVOUS",
          "KPLAN_RANK",
          "KPLAN_SIZE",
          "KPLAN_PAST_CACHES_BYTES",
          "KPLAN_FETCH_BLOCK_BYTES"};
}

}  // namespace kplan::transport
