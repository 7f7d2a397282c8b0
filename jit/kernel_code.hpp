#pragma once
// What equal kernels share: the spec, its precompiled form, and the machine code once there is some.

#include <atomic>

#include "jit/code_arena.hpp"
#include "jit/precompiled/precompiled_kernel.hpp"

namespace kplan::jit {

class KernelCode {
 public:
  explicit KernelCode(const KernelSpec& from) : spec(from), precompiled_(spec) {}

  /// Thread-safe; takes no lock. Machine code is used from the moment it is there.
  std::uint64_t run(const KernelArguments& arguments) const {
    const KernelFunction compiled = function_.load(std::memory_order_acquire);
    return compiled != nullptr ? compiled(&arguments) : precompiled_(arguments);
  }
  bool is_compiled() const { return function_.load(std::memory_order_acquire) != nullptr; }
  /// Once; the code lives as long as this.
  void set_compiled(PlacedCode code) {
    placed_ = std::move(code);
    function_.store(placed_.function(), std::memory_order_release);
  }

  const KernelSpec spec;

  /// Where the compiler service is with it; read and written under the service's lock.
  enum class Stage {
    asked,   ///< nobody works on it
    queued,  ///< for the background
    making,  ///< by some thread
    made,    ///< compiled, or never to be
    failed,  ///< tried in the background
  };
  Stage stage = Stage::asked;

 private:
  PrecompiledKernel precompiled_;
  PlacedCode placed_;
  std::atomic<KernelFunction> function_{nullptr};
};

}  // namespace kplan::jit
