// How it works: on x86 the words of cpuid from which processors' names and features are read, and the registers that
// the operating system saves; elsewhere what the kernel says in /proc/cpuinfo, lines that differ from core to core
// left out, and in the auxiliary vector. Too much in here costs a recompilation, too little a crash.
#include "jit/cache/host_cpu.hpp"

#include <cstdint>
#include <cstdio>

#if defined(__x86_64__)
#include <cpuid.h>
#else
#include <sys/auxv.h>

#include <fstream>
#include <set>
#endif

namespace kplan::jit {

#if defined(__x86_64__)

namespace {

void add(std::string& out, std::uint32_t word) {
  char hex[10];
  std::snprintf(hex, sizeof hex, " %x", word);
  out += hex;
}

std::uint32_t saved_registers() {
  std::uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

}  // namespace

std::string host_cpu() {
  struct Leaf {
    std::uint32_t number, sub;
    bool a, b, c, d;  // which registers say something about the processor, not about the core
  };
  static constexpr Leaf leaves[] = {{0, 0, true, true, true, true},
                                    {1, 0, true, false, true, true},
                                    {7, 0, true, true, true, true},
                                    {7, 1, true, true, true, true},
                                    {0xd, 1, true, false, false, false},
                                    {0x14, 0, false, true, false, false},
                                    {0x19, 0, false, true, false, false},
                                    {0x24, 0, false, true, false, false},
                                    {0x80000001, 0, false, false, true, true},
                                    {0x80000008, 0, false, true, false, false}};
  std::string out = "x86_64";
  bool saves_registers = false;
  const std::uint32_t last = __get_cpuid_max(0, nullptr), last_extended = __get_cpuid_max(0x80000000, nullptr);
  for (const Leaf& leaf : leaves) {
    if (leaf.number > (leaf.number < 0x80000000 ? last : last_extended)) continue;
    std::uint32_t a = 0, b = 0, c = 0, d = 0;
    __cpuid_count(leaf.number, leaf.sub, a, b, c, d);  // one trap each where there is a hypervisor
    out += '/';
    if (leaf.a) add(out, a);
    if (leaf.b) add(out, b);
    if (leaf.c) add(out, c);
    if (leaf.d) add(out, d);
    if (leaf.number == 1) saves_registers = (c & bit_OSXSAVE) != 0;
  }
  if (saves_registers) add(out, saved_registers());
  return out;
}

#else

std::string host_cpu() {
  std::ifstream in("/proc/cpuinfo");
  std::set<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    const std::string name = line.substr(0, line.find_first_of("\t:"));
    if (name != "processor" && name != "BogoMIPS" && name != "bogomips" && name != "cpu MHz" && name != "clock" &&
        name != "hart" && name != "core id" && name != "apicid")
      lines.insert(line);
  }
  std::string out = std::to_string(getauxval(AT_HWCAP)) + " " + std::to_string(getauxval(AT_HWCAP2));
  for (const std::string& line : lines) out += "\n" + line;
  return out;
}

#endif

}  // namespace kplan::jit
