#pragma once
// The C interface between the compiler service and the code generator's plugin. Both are built from one source
// tree, so specs cross it by address; the identity in the request keeps a plugin of another build out.

#include <cstddef>
#include <cstdint>

#include "jit/spec.hpp"

namespace kplan::jit {

inline constexpr std::uint32_t plugin_version = 3;
inline constexpr const char* plugin_symbol = "kplan_code_generator";

/// Why a call of the plugin failed; `code` is empty when it did not.
struct PluginFailure {
  char code[12] = {};
  char message[1012] = {};
};

/// A kernel's code as CodeImage reads it, freed with `free`; and the nanoseconds that each step of making it took.
struct GeneratedCode {
  std::byte* image = nullptr;
  std::size_t bytes = 0;
  std::uint64_t emission = 0;  ///< of LLVM IR
  std::uint64_t codegen = 0;   ///< of machine code
  std::uint64_t linking = 0;
};

/// What the plugin can do. Not thread-safe: the compiler service makes one call at a time. The plugin keeps nothing of
/// a kernel between calls.
struct CodeGenerator {
  /// False on failure.
  bool (*generate)(const Spec* spec, GeneratedCode* out, PluginFailure* failure);
  /// IR (0) or assembly (1) of the spec; null on failure. Freed with `free`.
  char* (*listing)(const Spec* spec, int what, PluginFailure* failure);
  void (*free)(void* memory);
};

struct PluginRequest {
  std::uint32_t version = plugin_version;
  std::uint32_t spec_bytes = sizeof(Spec);
  std::uint32_t instruction_bytes = sizeof(Instruction);
  std::uint32_t row_step_bytes = sizeof(RowStep);
  std::uint32_t arguments_bytes = sizeof(KernelArguments) + sizeof(RowArguments);
  const char* identity;  ///< generator_identity of the service's build
};

/// The one function that the plugin exports, under the name `plugin_symbol`. Null when the request is of another build,
/// or the host cannot be generated code for; `failure` says why.
using PluginEntry = const CodeGenerator* (*)(const PluginRequest* request, PluginFailure* failure);

}  // namespace kplan::jit
