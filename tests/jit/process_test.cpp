// What happens to a process while kernels are compiled: it ends, it forks, it may not have executable memory.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "processes.hpp"
#include "widening_kernels.hpp"

using namespace kplan;
using namespace kplan::test;
using jit::Compiler;
using jit::Kernel;
using jit::KernelSpec;
using jit::Wait;

TEST_CASE("the process ends while kernels are being compiled", "[.][child]") {
  std::vector<KernelSpec> specs;
  for (int i = 0; i < 100; ++i) specs.push_back(widening_spec(100 + i));
  static std::vector<Kernel> kernels;  // still held when static objects go
  kernels = Compiler::instance().compile(specs, Wait::not_at_all);
  const char* microseconds = std::getenv("KPLAN_TEST_MICROSECONDS");
  usleep(microseconds == nullptr ? 0 : static_cast<useconds_t>(std::atoi(microseconds)));
  CHECK(call(kernels[0], 100).is_widened);
}

TEST_CASE("a process that ends while its kernels are compiled ends well") {
  for (const int microseconds : {0, 500, 1000, 2000, 3000, 4000, 5000, 7000, 10000, 20000}) {
    const auto begin = std::chrono::steady_clock::now();
    const Ended ended = run_child("the process ends while kernels are being compiled",
                                  {{"KPLAN_TEST_MICROSECONDS", std::to_string(microseconds)}, {"KPLAN_CACHE", "off"}});
    INFO(microseconds << " us: " << ended.output);
    CHECK(ended.status == 0);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
  }
}

#if defined(__x86_64__)
TEST_CASE("kernels run precompiled where executable memory is forbidden", "[.][child]") {
  // mmap of anonymous memory with PROT_EXEC is refused from here on.
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[3])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) return;
  const KernelSpec spec = widening_spec(47);
  const Kernel kernel = Compiler::instance().compile({&spec, 1})[0];
  CHECK_FALSE(kernel.is_compiled());
  CHECK(call(kernel, 47).is_widened);
  CHECK_FALSE(Compiler::instance().is_available());
  CHECK_FALSE(Compiler::instance().why_not().empty());
}

TEST_CASE("where executable memory is forbidden kernels run precompiled") {
  const Ended ended = run_child("kernels run precompiled where executable memory is forbidden");
  INFO(ended.output);
  CHECK(ended.status == 0);
}
#endif

// The memory of sanitizers is not made for a fork while another thread allocates.
#if !defined(KPLAN_SANITIZE_THREAD) && !defined(KPLAN_SANITIZE_ADDRESS)
TEST_CASE("a forked process compiles on, whatever the background was doing", "[.][child]") {
  for (int round = 0; round < 8; ++round) {
    std::vector<KernelSpec> specs;
    for (int i = 0; i < 30; ++i) specs.push_back(widening_spec(1000 + 100 * round + i));
    const auto kernels = Compiler::instance().compile(specs, Wait::not_at_all);
    usleep(static_cast<useconds_t>(700 * round));
    const pid_t child = fork();
    const auto after = Compiler::instance().compile(specs);
    bool ok = true;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const auto count = static_cast<std::size_t>(specs[i].extents[0]);
      ok = ok && call(kernels[i], count).is_widened && call(after[i], count).is_widened;
      ok = ok && after[i].is_compiled() == Compiler::instance().is_available();
    }
    const Kernel other = background_kernel(widening_spec(5000 + round));
    ok = ok && (!after[0].is_compiled() || comes_true([&] { return other.is_compiled(); }));
    if (child == 0) _exit(ok ? 0 : 1);
    CHECK(ok);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
}

TEST_CASE("a process may fork while its kernels are compiled") {
  const Ended ended =
      run_child("a forked process compiles on, whatever the background was doing", {{"KPLAN_CACHE", "off"}});
  INFO(ended.output);
  CHECK(ended.status == 0);
}
#endif
