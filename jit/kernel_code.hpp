#pragma once
// What the users of equal specs share: the spec, and the machine code once there is some; of kernels their precompiled
// form too.

#include <atomic>

#include "jit/code_arena.hpp"
#include "jit/precompiled/precompiled_kernel.hpp"
#include "jit/spec.hpp"

namespace kplan::jit {

class SharedCode {
 public:
  explicit SharedCode(Spec from) : spec(std::move(from)) {}
  virtual ~SharedCode() = default;
  SharedCode(const SharedCode&) = delete;
  SharedCode& operator=(const SharedCode&) = delete;

  bool is_compiled() const { return function() != nullptr; }
  /// Once; the code lives as long as this.
  void set_compiled(PlacedCode code) {
    placed_ = std::move(code);
    function_.store(placed_.function(), std::memory_order_release);
  }

  const Spec spec;

  /// Where the compiler service is with it; read and written under the service's lock.
  enum class Stage {
    asked,   ///< nobody works on it
    queued,  ///< for the background
    making,  ///< by some thread
    made,    ///< compiled, or never to be
    failed,  ///< tried in the background
  };
  Stage stage = Stage::asked;

 protected:
  /// Thread-safe; takes no lock. Null until there is machine code.
  PlacedFunction function() const { return function_.load(std::memory_order_acquire); }

 private:
  PlacedCode placed_;
  std::atomic<PlacedFunction> function_{nullptr};
};

class KernelCode : public SharedCode {
 public:
  explicit KernelCode(const KernelSpec& from)
      : SharedCode(from), kernel_spec(std::get<KernelSpec>(spec)), precompiled_(kernel_spec) {}

  /// Thread-safe; takes no lock. Machine code is used from the moment it is there.
  std::uint64_t run(const KernelArguments& arguments) const {
    const auto compiled = reinterpret_cast<KernelFunction>(function());
    return compiled != nullptr ? compiled(&arguments) : precompiled_(arguments);
  }

  const KernelSpec& kernel_spec;

 private:
  PrecompiledKernel precompiled_;
};

class RowCode : public SharedCode {
 public:
  explicit RowCode(const RowSpec& from) : SharedCode(from) {}

  /// Null until there is machine code.
  RowFunction row_function() const { return reinterpret_cast<RowFunction>(function()); }
};

}  // namespace kplan::jit
