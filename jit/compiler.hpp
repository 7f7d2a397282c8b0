#pragma once
// The compiler service of one process: specs in, callable kernels out, each spec compiled once while anyone
// holds its kernel. The code generator (LLVM ORC) lives in a plugin that is opened on the first miss; where it
// is missing or KPLAN_JIT=off, kernels run through the interpreter of the same spec.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jit/kernel_spec.hpp"

namespace kplan::jit {

/// A kernel ready to run. Copies share the code; the code goes with the last of them.
class Kernel {
 public:
  Kernel() = default;
  /// Thread-safe; allocates nothing. Returns what `KernelFunction` returns.
  std::uint64_t operator()(const KernelArguments& arguments) const {
    return function_ ? function_(&arguments) : interpret(*spec_, arguments);
  }
  bool is_compiled() const { return function_ != nullptr; }
  const KernelSpec& spec() const { return *spec_; }

 private:
  friend class Compiler;
  std::shared_ptr<const KernelSpec> spec_;
  std::shared_ptr<const void> code_;
  KernelFunction function_ = nullptr;
};

enum class Listing { ir, assembly };

/// The process's compiler. Thread-safe.
class Compiler {
 public:
  /// The one of this process.
  static Compiler& instance();

  /// Kernels for the specs, in their order; equal specs share code. Errors: CompilerError when the generator
  /// fails. Cost: milliseconds for each spec not seen before, a hash look-up otherwise.
  std::vector<Kernel> compile(std::span<const KernelSpec> specs);

  /// What would be generated for the spec: LLVM IR, or assembly of this machine. Errors: CompilerError when there is no
  /// code generator.
  std::string listing(const KernelSpec& spec, Listing what);

  /// False when KPLAN_JIT=off or the plugin cannot be opened; `why_not` says which.
  bool is_available();
  std::string why_not();

 private:
  Compiler();
  ~Compiler();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kplan::jit
