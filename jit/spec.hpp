#pragma once
// What code can be generated for.

#include <variant>

#include "jit/kernel_spec.hpp"
#include "jit/row_spec.hpp"

namespace kplan::jit {

using Spec = std::variant<KernelSpec, RowSpec>;

/// Equal for equal specs (names aside), different for different ones, of either kind.
inline std::string key_of(const KernelSpec& spec) { return "k" + spec.key(); }
inline std::string key_of(const RowSpec& spec) { return "r" + spec.key(); }
inline std::string key_of(const Spec& spec) {
  return std::visit([](const auto& s) { return key_of(s); }, spec);
}

/// Whether it never gets machine code.
inline bool is_too_long(const Spec& spec) {
  return std::visit([](const auto& s) { return s.is_too_long(); }, spec);
}

/// Throws InternalError when the spec is not well formed.
inline void check(const Spec& spec) {
  std::visit([](const auto& s) { check(s); }, spec);
}

}  // namespace kplan::jit
