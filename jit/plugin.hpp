#pragma once
// The C interface between the compiler service and the code generator's plugin. Both are built from one source
// tree, so specs cross it by address; the sizes in the request keep a plugin of another build out.

#include <cstddef>
#include <cstdint>

#include "jit/kernel_spec.hpp"

namespace kplan::jit {

inline constexpr std::uint32_t plugin_version = 1;
inline constexpr const char* plugin_symbol = "kplan_code_generator";

/// Why a call of the plugin failed; `code` is empty when it did not.
struct PluginFailure {
  char code[12] = {};
  char message[1012] = {};
};

/// What the plugin can do. Not thread-safe: the compiler service makes one call at a time.
struct CodeGenerator {
  /// Compiles the specs into one batch and writes their functions; returns the batch, or null on failure.
  void* (*compile)(const KernelSpec* const* specs, std::size_t count, KernelFunction* functions,
                   PluginFailure* failure);
  /// Frees the code of a batch.
  void (*release)(void* batch);
  /// IR (0) or assembly (1) of the spec; null on failure. The text is freed with `free_text`.
  char* (*listing)(const KernelSpec* spec, int what, PluginFailure* failure);
  void (*free_text)(char* text);
};

struct PluginRequest {
  std::uint32_t version = plugin_version;
  std::uint32_t spec_bytes = sizeof(KernelSpec);
  std::uint32_t instruction_bytes = sizeof(Instruction);
  std::uint32_t arguments_bytes = sizeof(KernelArguments);
};

/// The one function that the plugin exports, under the name `plugin_symbol`. Null when the request is of another build,
/// or the host cannot be generated code for; `failure` says why.
using PluginEntry = const CodeGenerator* (*)(const PluginRequest* request, PluginFailure* failure);

}  // namespace kplan::jit
