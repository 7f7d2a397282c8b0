#pragma once
// The compiler service of one process: specs in, callable kernels out, each spec compiled once while anyone holds its
// kernel. Machine code comes from the disk cache or from the code generator (LLVM), a plugin that is opened when
// neither memory nor disk has a spec. Until it is there, and where there can be none, kernels run precompiled.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jit/kernel_code.hpp"
#include "jit/statistics.hpp"

namespace kplan::jit {

/// A kernel ready to run. Copies share the code, which goes with the last of them, or a little later (compiler.cpp).
class Kernel {
 public:
  Kernel() = default;
  /// Thread-safe; takes no lock and allocates nothing. Returns what `KernelFunction` returns.
  std::uint64_t operator()(const KernelArguments& arguments) const { return code_->run(arguments); }
  /// Whether calls run machine code made for the spec; may become true at any time.
  bool is_compiled() const { return code_ != nullptr && code_->is_compiled(); }
  const KernelSpec& spec() const { return code_->kernel_spec; }

 private:
  friend class Compiler;
  explicit Kernel(std::shared_ptr<const KernelCode> code) : code_(std::move(code)) {}
  std::shared_ptr<const KernelCode> code_;
};

/// Rows that machine code finds, once there is some. Copies share the code; it goes with the last of them.
class RowKernel {
 public:
  RowKernel() = default;
  /// Thread-safe; takes no lock. Null where there is no code, or not yet: it may be there at any time.
  RowFunction function() const { return code_ ? code_->row_function() : nullptr; }

 private:
  friend class Compiler;
  explicit RowKernel(std::shared_ptr<const RowCode> code) : code_(std::move(code)) {}
  std::shared_ptr<const RowCode> code_;
};

enum class Listing { ir, assembly };

/// Whether `compile` returns when all kernels are compiled, or at once.
enum class Wait { until_compiled, not_at_all };

/// The process's compiler. Thread-safe.
class Compiler {
 public:
  /// The one of this process.
  static Compiler& instance();

  /// Kernels for the specs, in their order; equal specs share code.
  /// `until_compiled`: machine code is there on return, where it can be had at all. Errors: CompilerError when the
  /// generator fails, also for a spec that it failed on in the background. Cost: for each spec less than a microsecond
  /// when somebody holds its kernel, ten from disk, half a millisecond from the generator.
  /// `not_at_all`: kernels run precompiled until a background thread has found or made their machine code; what
  /// fails there stays precompiled. No file is touched. Cost: microseconds. KPLAN_JIT=wait makes it wait all the same.
  std::vector<Kernel> compile(std::span<const KernelSpec> specs, Wait wait = Wait::until_compiled);
  /// The same for rows.
  std::vector<RowKernel> compile(std::span<const RowSpec> specs, Wait wait = Wait::until_compiled);

  /// What would be generated for the spec: LLVM IR, or assembly of this machine. Errors: CompilerError when there is no
  /// code generator.
  std::string listing(const Spec& spec, Listing what);

  /// False when KPLAN_JIT=off, the plugin cannot be opened or executable memory is forbidden; `why_not` says which.
  /// Opens the plugin.
  bool is_available();
  std::string why_not();

  /// What was done so far, and what it took.
  Statistics statistics();

 private:
  Compiler();
  ~Compiler();
  struct State;
  template <class Code, class Handle, class OneSpec>
  std::vector<Handle> compile_all(std::span<const OneSpec> specs, Wait wait);
  std::unique_ptr<State> state_;
};

}  // namespace kplan::jit
