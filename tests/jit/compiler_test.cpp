// The compiler service: sharing, listings, lifetimes, threads, and life without a code generator.
#include "jit/compiler.hpp"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "kplan/error.hpp"
#include "processes.hpp"
#include "specs.hpp"

using namespace kplan;
using namespace kplan::test;
using jit::Compiler;
using jit::Kernel;
using jit::KernelSpec;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t resident_bytes() {
  std::ifstream statistics("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  statistics >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(maps), {}, '\n'));
}

/// Runs a widening kernel on its own memory and says whether all elements arrived.
bool widens(const Kernel& kernel, std::size_t count) {
  std::vector<float> source(count);
  std::vector<double> target(count, -1);
  for (std::size_t i = 0; i < count; ++i) source[i] = static_cast<float>(i) / 3;
  std::byte* bases[] = {reinterpret_cast<std::byte*>(target.data()), reinterpret_cast<std::byte*>(source.data())};
  if (kernel({bases, nullptr, 0, nullptr, nullptr, nullptr}) != 0) return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (target[i] != static_cast<double>(source[i])) return false;
  }
  return true;
}

// Sanitizers keep freed memory for a while, so there the resident size says nothing; leaks are reported at exit.
#if defined(KPLAN_SANITIZE_ADDRESS) || defined(KPLAN_SANITIZE_THREAD)
constexpr bool keeps_freed_memory = true;
constexpr int churn_cycles = 300;
#else
constexpr bool keeps_freed_memory = false;
constexpr int churn_cycles = 10000;
#endif

}  // namespace

#ifdef KPLAN_HAS_CODE_GENERATOR
TEST_CASE("the code generator that was built opens") {
  const char* jit = std::getenv("KPLAN_JIT");
  if (jit != nullptr && std::string(jit) == "off") return;
  INFO(Compiler::instance().why_not());
  CHECK(Compiler::instance().is_available());
}
#endif

TEST_CASE("equal specs share code, within one call and across calls") {
  const KernelSpec specs[] = {widening_spec(17), widening_spec(18), widening_spec(17)};
  const auto first = Compiler::instance().compile(specs);
  const auto second = Compiler::instance().compile({specs, 1});
  CHECK(&first[0].spec() == &first[2].spec());
  CHECK(&first[0].spec() == &second[0].spec());
  CHECK(&first[0].spec() != &first[1].spec());
  CHECK(first[0].is_compiled() == Compiler::instance().is_available());
}

TEST_CASE("what is too long is not compiled, waiting or not, and runs the same") {
  // Of so many instructions: widens, and negates an even number of times.
  const auto spec_of = [](std::int32_t count, Scalar type) {
    KernelSpec spec = widening_spec(11);
    spec.instructions.back().type = type;
    while (std::ssize(spec.instructions) < count - 1)
      spec.instructions.push_back(apply(Operation::neg, type, static_cast<std::int32_t>(spec.instructions.size()) - 1));
    spec.instructions.push_back(apply(Operation::convert, Scalar::f64, count - 2));
    spec.outputs = {{0, count - 1}};
    return spec;
  };
  const auto before = Compiler::instance().statistics().too_long;
  const KernelSpec specs[] = {spec_of(255, Scalar::f64), spec_of(65, Scalar::c128), spec_of(257, Scalar::f64),
                              spec_of(67, Scalar::c128)};
  const auto kernels = Compiler::instance().compile(specs);
  CHECK(Compiler::instance().statistics().too_long == before + 2);
  for (std::size_t k = 0; k < 4; ++k) {
    CAPTURE(k);
    CHECK(kernels[k].is_compiled() == (k < 2 && Compiler::instance().is_available()));
    CHECK(widens(kernels[k], 11));
  }
}

TEST_CASE("a malformed spec is refused before anything is generated") {
  KernelSpec spec = widening_spec(5);
  spec.outputs.clear();
  CHECK_THROWS_AS(Compiler::instance().compile({&spec, 1}), InternalError);
}

TEST_CASE("listings name the kernel and show vectors and literal strides") {
  if (!Compiler::instance().is_available()) return;
  KernelSpec spec = widening_spec(1000);
  spec.name = "pack u[i-1] @left";
  const std::string ir = Compiler::instance().listing(spec, jit::Listing::ir);
  CHECK(contains(ir, "@kplan_pack_u_i_1___left"));
  CHECK(contains(ir, " x float>"));
  KernelSpec strided = copy_spec({100, 40}, {320, 8}, {4096, 16}, 8);
  const std::string assembly = Compiler::instance().listing(strided, jit::Listing::assembly);
#if defined(__x86_64__)
  CHECK((contains(assembly, "%xmm") || contains(assembly, "%ymm") || contains(assembly, "%zmm")));
  CHECK(contains(assembly, "$4096"));
#endif
  CHECK(contains(assembly, "kplan_copy"));
}

TEST_CASE("compiling and releasing over and over grows neither memory nor mappings", "[.][child]") {
  const char* asked = std::getenv("KPLAN_CHURN");  // cycles
  const int cycles = asked != nullptr ? std::atoi(asked) : churn_cycles;
  std::size_t bytes_before = 0, mappings_before = 0;
  for (int i = 0; i < cycles; ++i) {
    const KernelSpec spec = widening_spec(1 + i % 50, 4 * i);  // none twice
    const auto kernels = Compiler::instance().compile({&spec, 1});
    REQUIRE(kernels[0].is_compiled() == Compiler::instance().is_available());
    if (i != cycles / 5) continue;
    bytes_before = resident_bytes();
    mappings_before = mappings();
  }
  INFO("resident before " << bytes_before << ", after " << resident_bytes());
  CHECK((keeps_freed_memory || resident_bytes() < bytes_before + (8u << 20)));
  CHECK(mappings() < mappings_before + 20);
}

TEST_CASE("ten thousand kernels come and go in flat memory") {
  const Ended ended =
      run_child("compiling and releasing over and over grows neither memory nor mappings", {{"KPLAN_CACHE", "off"}});
  INFO(ended.output);
  CHECK(ended.status == 0);
}

TEST_CASE("a kernel outlives the batch mates it was compiled with") {
  std::vector<KernelSpec> specs;
  for (int i = 0; i < 8; ++i) specs.push_back(widening_spec(200 + i));
  std::vector<Kernel> kernels = Compiler::instance().compile(specs);
  const Kernel kept = kernels[5];
  kernels.clear();
  CHECK(widens(kept, 205));
}

TEST_CASE("code that is released stays for those who ask for it soon") {
  const KernelSpec spec = widening_spec(310);
  (void)Compiler::instance().compile({&spec, 1});
  const auto before = Compiler::instance().statistics();
  const auto again = Compiler::instance().compile({&spec, 1});
  const auto after = Compiler::instance().statistics();
  CHECK(widens(again[0], 310));
  CHECK(again[0].is_compiled() == Compiler::instance().is_available());
  CHECK(after.from_memory - before.from_memory == (Compiler::instance().is_available() ? 1u : 0u));
}

TEST_CASE("threads compile, share, run and release at the same time") {
  std::vector<std::thread> threads;
  std::vector<int> failures(4, 0);
  for (std::size_t t = 0; t < failures.size(); ++t) {
    threads.emplace_back([t, &failures] {
      for (int i = 0; i < 60; ++i) {
        const KernelSpec specs[] = {widening_spec(300 + i % 5), widening_spec(400 + (i + static_cast<int>(t)) % 9)};
        const auto kernels = Compiler::instance().compile(specs);
        if (!widens(kernels[0], static_cast<std::size_t>(300 + i % 5))) ++failures[t];
        if (!widens(kernels[1], static_cast<std::size_t>(400 + (i + static_cast<int>(t)) % 9))) ++failures[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == std::vector<int>(4, 0));
}

TEST_CASE("kernels run precompiled where code generation is off", "[.][child]") {
  // Run by the next test in a process of its own, since a process opens the generator once.
  const KernelSpec spec = widening_spec(33);
  const auto kernels = Compiler::instance().compile({&spec, 1});
  CHECK_FALSE(kernels[0].is_compiled());
  CHECK(widens(kernels[0], 33));
  CHECK_FALSE(Compiler::instance().why_not().empty());
  try {
    Compiler::instance().listing(spec, jit::Listing::ir);
    FAIL("listed without a code generator");
  } catch (const CompilerError& error) {
    CHECK(error.code() == "KP-C001");
  }
}

TEST_CASE("KPLAN_JIT=off and a plugin that is not there leave precompiled kernels") {
  const Environment each[] = {{{"KPLAN_JIT", "off"}},
                              {{"KPLAN_PLUGIN", "/nowhere/libkplan_llvm.so"}, {"KPLAN_CACHE", "off"}}};
  for (const Environment& environment : each) {
    const Ended ended = run_child("kernels run precompiled where code generation is off", environment);
    INFO(ended.output);
    CHECK(ended.status == 0);
  }
}

TEST_CASE("the statistics count where kernels came from and what it took") {
  const auto before = Compiler::instance().statistics();
  const KernelSpec specs[] = {widening_spec(777), widening_spec(778), widening_spec(777)};
  const auto kernels = Compiler::instance().compile(specs);
  const auto again = Compiler::instance().compile(specs);
  const auto after = Compiler::instance().statistics();
  CHECK(after.asked - before.asked == 6);
  CHECK(after.from_memory - before.from_memory == 4);
  if (!Compiler::instance().is_available()) return;
  CHECK(after.generated - before.generated == 2);
  CHECK(after.codegen_us > before.codegen_us);
  CHECK(after.linking_us > before.linking_us);
  CHECK(after.plugin_load_us > 0);
}
