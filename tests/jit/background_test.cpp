// Kernels at hand at once: precompiled first, machine code when the background has it.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "kplan/error.hpp"
#include "processes.hpp"
#include "widening_kernels.hpp"

using namespace kplan;
using namespace kplan::test;
using jit::Compiler;
using jit::Kernel;
using jit::KernelSpec;
using jit::Wait;

namespace {

std::string log_of(const std::string& path) {
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

/// Runs a hidden test with the fake generator and without a cache.
Ended run_with_fake(const std::string& test, Environment more = {}) {
  more.push_back({"KPLAN_PLUGIN", fake_generator()});
  more.push_back({"KPLAN_CACHE", "off"});
  Ended out = run_child(test, more);
  INFO(out.output);
  CHECK(out.status == 0);
  return out;
}

}  // namespace

TEST_CASE("kernels run precompiled while the background compiles them", "[.][child]") {
  const Kernel kernel = background_kernel(widening_spec(41));
  CHECK_FALSE(kernel.is_compiled());
  CHECK(call(kernel, 41).returned == 0);
  CHECK(call(kernel, 41).is_widened);
  REQUIRE(comes_true([&] { return kernel.is_compiled(); }));
  CHECK(call(kernel, 41).returned == 77);  // the fake generator's code
  CHECK(Compiler::instance().statistics().generated == 1);
}

TEST_CASE("a background failure leaves the kernel precompiled, and the next waiting compile says so", "[.][child]") {
  KernelSpec bad = widening_spec(42);
  bad.name = "bad";
  const KernelSpec good = widening_spec(43);
  const Kernel kernel = background_kernel(bad), other = background_kernel(good);
  REQUIRE(comes_true([&] { return other.is_compiled() && Compiler::instance().statistics().failed == 1; }));
  CHECK_FALSE(kernel.is_compiled());
  CHECK(call(kernel, 42).is_widened);
  CHECK(Compiler::instance().statistics().last_failure == "a bad kernel [KP-C006]");
  background_kernel(bad);  // is not tried again
  const KernelSpec both[] = {good, bad};
  try {
    Compiler::instance().compile(both);
    FAIL("compiled");
  } catch (const CompilerError& error) {
    CHECK(error.code() == "KP-C006");
  }
  CHECK(Compiler::instance().statistics().failed == 2);
}

TEST_CASE("kernels released before their turn are not compiled", "[.][child]") {
  const Kernel first = background_kernel(widening_spec(44));
  REQUIRE(comes_true([] { return !log_of(std::getenv("KPLAN_FAKE_LOG")).empty(); }));
  for (int i = 0; i < 20; ++i) background_kernel(widening_spec(50 + i));
  const Kernel last = background_kernel(widening_spec(45));
  REQUIRE(comes_true([&] { return last.is_compiled(); }));
  CHECK(Compiler::instance().statistics().dropped == 20);
  CHECK(log_of(std::getenv("KPLAN_FAKE_LOG")) == "widen 44\nwiden 45\n");
}

TEST_CASE("a waiting compile takes over what is queued and waits for what is being made", "[.][child]") {
  std::vector<KernelSpec> specs;
  for (int i = 0; i < 6; ++i) specs.push_back(widening_spec(70 + i));
  const auto early = Compiler::instance().compile(specs, Wait::not_at_all);
  const auto late = Compiler::instance().compile(specs);
  for (const Kernel& k : late) CHECK(k.is_compiled());
  for (const Kernel& k : early) CHECK(k.is_compiled());
  CHECK(Compiler::instance().statistics().generated == 6);
}

TEST_CASE("a compile that need not wait waited", "[.][child]") {
  CHECK(background_kernel(widening_spec(46)).is_compiled());
}

TEST_CASE("without a wait kernels are at hand at once, and swapped when they are compiled") {
  if (fake_generator().empty()) return;
  run_with_fake("kernels run precompiled while the background compiles them", {{"KPLAN_FAKE_MILLISECONDS", "100"}});
  run_with_fake("a background failure leaves the kernel precompiled, and the next waiting compile says so");
  const TemporaryFolder folder;
  run_with_fake("kernels released before their turn are not compiled",
                {{"KPLAN_FAKE_MILLISECONDS", "300"}, {"KPLAN_FAKE_LOG", folder.path() + "/log"}});
  run_with_fake("a waiting compile takes over what is queued and waits for what is being made",
                {{"KPLAN_FAKE_MILLISECONDS", "20"}});
}

TEST_CASE("KPLAN_JIT=wait makes every compile wait") {
  if (fake_generator().empty()) return;
  run_with_fake("a compile that need not wait waited", {{"KPLAN_JIT", "wait"}, {"KPLAN_FAKE_MILLISECONDS", "50"}});
}

TEST_CASE("threads call kernels while the background swaps their code") {
  std::vector<KernelSpec> specs;
  for (int i = 0; i < 40; ++i) specs.push_back(widening_spec(500 + i));
  const auto kernels = Compiler::instance().compile(specs, Wait::not_at_all);
  const bool can_compile = Compiler::instance().is_available();
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (std::size_t round = 0, compiled = 0; round < 5 || (can_compile && compiled < kernels.size()); ++round) {
        compiled = 0;
        for (std::size_t i = 0; i < kernels.size(); ++i) {
          compiled += kernels[i].is_compiled();
          const Called called = call(kernels[i], 500 + i);
          if (!called.is_widened || called.returned != 0) ++failures;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
}
