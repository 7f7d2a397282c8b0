// Compiled kernels against the interpreter of the same specs, on random kernels.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "jit/compiler.hpp"
#include "random_kernel.hpp"

using namespace kplan;
using namespace kplan::test;

namespace {

std::uint64_t seed() {
  const char* given = std::getenv("KPLAN_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20240607;
}

std::int64_t iterations(const RandomKernel& kernel) {
  std::int64_t count = 0;
  for_each_offset(kernel, 0, [&](std::int64_t) { ++count; });
  return count;
}

/// Runs the kernel both ways on the same memory and says what differs.
std::string difference(Arena& arena, const RandomKernel& kernel, const jit::Kernel& compiled) {
  jit::KernelArguments arguments = arena.prepare(kernel);
  const std::uint64_t expected = jit::interpret(kernel.spec, arguments);
  const auto expected_bytes = arena.target(kernel);
  arguments = arena.prepare(kernel);
  const std::uint64_t got = compiled(arguments);
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

}  // namespace

TEST_CASE("compiled kernels do what the interpreter does, bit for bit") {
  if (!jit::Compiler::instance().is_available()) return;
  std::mt19937_64 random(seed());
  Arena arena;
  for (int batch = 0; batch < 60; ++batch) {
    std::vector<RandomKernel> kernels;
    std::vector<jit::KernelSpec> specs;
    for (int i = 0; i < 50; ++i) {
      kernels.push_back(random_kernel(random));
      specs.push_back(kernels.back().spec);
    }
    const auto compiled = jit::Compiler::instance().compile(specs);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const std::string wrong = difference(arena, kernels[i], compiled[i]);
      if (wrong.empty()) continue;
      std::string numbers = "extents";
      for (std::int64_t extent : kernels[i].extents) numbers += " " + std::to_string(extent);
      numbers += ", strides";
      for (std::int64_t stride : kernels[i].strides) numbers += " " + std::to_string(stride);
      numbers += ", list length " + std::to_string(kernels[i].list_length);
      FAIL("KPLAN_SEED=" << seed() << ", batch " << batch << ", kernel " << i << ": " << wrong << "\n"
                         << specs[i].to_text() << numbers);
    }
  }
}
