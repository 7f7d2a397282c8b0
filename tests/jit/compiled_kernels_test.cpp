// Compiled and precompiled kernels against the interpreter of the same specs, on random kernels. Environment:
// KPLAN_SEED (default fixed), KPLAN_KERNELS (how many, 50 at a time).
#include <catch2/catch.hpp>

#include "jit/compiler.hpp"
#include "random_kernel.hpp"
#include "tests/number_from_environment.hpp"

using namespace kplan;
using namespace kplan::test;

namespace {

std::uint64_t seed() { return number_from_environment("KPLAN_SEED", 20240607); }
std::uint64_t kernels_to_draw() { return number_from_environment("KPLAN_KERNELS", 3000); }

std::int64_t iterations(const RandomKernel& kernel) {
  std::int64_t count = 0;
  for_each_offset(kernel, 0, [&](std::int64_t) { ++count; });
  return count;
}

/// Runs the kernel and the interpreter on the same memory and says what differs.
template <class K>
std::string difference(Arena& arena, const RandomKernel& kernel, const K& other) {
  jit::KernelArguments arguments = arena.prepare(kernel);
  const std::uint64_t expected = jit::interpret(kernel.spec, arguments);
  const auto expected_bytes = arena.target(kernel);
  arguments = arena.prepare(kernel);
  const std::uint64_t got = other(arguments);
  const auto bytes = arena.target(kernel);
  if (expected != 0) {
    const bool ok = got >= expected && got <= static_cast<std::uint64_t>(iterations(kernel));
    return ok ? "" : "fails at " + std::to_string(got) + ", not " + std::to_string(expected);
  }
  if (got != 0) return "fails at " + std::to_string(got) + ", not at all";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != expected_bytes[i]) {
      return "byte " + std::to_string(kernel.first[0] + static_cast<std::int64_t>(i)) + " is " +
             std::to_string(int(bytes[i])) + ", not " + std::to_string(int(expected_bytes[i]));
    }
  }
  return "";
}

/// The kernel in words, for a failure's report.
std::string text_of(const RandomKernel& kernel) {
  std::string out = kernel.spec.to_text() + "extents";
  for (std::int64_t extent : kernel.extents) out += " " + std::to_string(extent);
  out += ", strides";
  for (std::int64_t stride : kernel.strides) out += " " + std::to_string(stride);
  return out + ", list length " + std::to_string(kernel.list_length);
}

}  // namespace

TEST_CASE("precompiled kernels do what the interpreter does, bit for bit") {
  std::mt19937_64 random(seed());
  Arena arena;
  for (std::uint64_t i = 0; i < 2 * kernels_to_draw(); ++i) {
    const RandomKernel kernel = random_kernel(random);
    const std::string wrong = difference(arena, kernel, jit::PrecompiledKernel(kernel.spec));
    if (!wrong.empty()) FAIL("KPLAN_SEED=" << seed() << ", kernel " << i << ": " << wrong << "\n" << text_of(kernel));
  }
}

TEST_CASE("compiled kernels do what the interpreter does, bit for bit") {
  if (!jit::Compiler::instance().is_available()) return;
  std::mt19937_64 random(seed());
  Arena arena;
  constexpr std::uint64_t in_batch = 50;
  for (std::uint64_t batch = 0; batch < kernels_to_draw() / in_batch; ++batch) {
    std::vector<RandomKernel> kernels;
    std::vector<jit::KernelSpec> specs;
    for (std::uint64_t i = 0; i < in_batch; ++i) {
      kernels.push_back(random_kernel(random));
      specs.push_back(kernels.back().spec);
    }
    const auto compiled = jit::Compiler::instance().compile(specs);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      REQUIRE(compiled[i].is_compiled());
      const std::string wrong = difference(arena, kernels[i], compiled[i]);
      if (wrong.empty()) continue;
      FAIL("KPLAN_SEED=" << seed() << ", batch " << batch << ", kernel " << i << ": " << wrong << "\n"
                         << text_of(kernels[i]));
    }
  }
}
