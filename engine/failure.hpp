#pragma once
// Failures as text, so that other ranks can throw them too.

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

namespace kplan {

/// The error as a JSON text; empty for none.
std::string encode_failure(const std::exception_ptr& failure);

/// The error of another rank, as one of the same kind here that names the rank; null for an empty text.
std::exception_ptr decode_failure(std::string_view text, std::int64_t rank);

}  // namespace kplan
