// How it works: copies have loops of their own; instructions become a program over blocks; what is too large for that
// is left to the interpreter.
#include "jit/precompiled/precompiled_kernel.hpp"

#include "jit/precompiled/copy.hpp"

namespace kplan::jit {

PrecompiledKernel::PrecompiledKernel(const KernelSpec& spec) : spec_(spec) {
  if (spec.copy_bytes == 0) program_ = BlockProgram::make(spec);
}

std::uint64_t PrecompiledKernel::operator()(const KernelArguments& arguments) const {
  if (program_) return run(*program_, spec_, arguments);
  if (spec_.copy_bytes == 0) return interpret(spec_, arguments);
  run_copy(spec_, arguments);
  return 0;
}

}  // namespace kplan::jit
