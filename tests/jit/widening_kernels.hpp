#pragma once
// Widening kernels in use: calls whose results are checked, and what a child process says about where code came from.

#include <chrono>
#include <cstdio>
#include <thread>

#include "jit/compiler.hpp"
#include "specs.hpp"

namespace kplan::test {

/// What a call of a widening kernel gave, and whether it widened.
struct Called {
  std::uint64_t returned = 0;
  bool is_widened = true;
};

inline Called call(const jit::Kernel& kernel, std::size_t count) {
  std::vector<float> source(count);
  std::vector<double> target(count, -1);
  for (std::size_t i = 0; i < count; ++i) source[i] = static_cast<float>(i) / 3;
  std::byte* bases[] = {reinterpret_cast<std::byte*>(target.data()), reinterpret_cast<std::byte*>(source.data())};
  Called out{kernel({bases, nullptr, 0, nullptr, nullptr, nullptr}), true};
  for (std::size_t i = 0; i < count; ++i)
    out.is_widened = out.is_widened && target[i] == static_cast<double>(source[i]);
  return out;
}

/// Waits, a minute at most.
template <class F>
bool comes_true(F f) {
  for (int i = 0; i < 60000 && !f(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return f();
}

/// A kernel that is not waited for.
inline jit::Kernel background_kernel(const jit::KernelSpec& spec) {
  return jit::Compiler::instance().compile({&spec, 1}, jit::Wait::not_at_all)[0];
}

/// Prints the counts, and how many of the kernels are compiled, for `Ended::number`.
inline void print_where_from(std::span<const jit::Kernel> kernels) {
  std::size_t compiled = 0;
  for (const jit::Kernel& k : kernels) compiled += k.is_compiled();
  const jit::Statistics s = jit::Compiler::instance().statistics();
  std::printf("\ncompiled %zu\ndisk %lu\ngenerated %lu\nfailed %lu\ndropped %lu\nload_us %.0f\n", compiled,
              static_cast<unsigned long>(s.from_disk), static_cast<unsigned long>(s.generated),
              static_cast<unsigned long>(s.failed), static_cast<unsigned long>(s.dropped), s.plugin_load_us);
}

}  // namespace kplan::test
