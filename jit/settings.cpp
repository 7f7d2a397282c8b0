// How it works: KPLAN_JIT is looked at once, when the first engine is made or the first kernel is asked for. An empty
// variable is as good as none. What says where code lies is not believed in programs that run with another's rights.
#include "jit/settings.hpp"

#include <elf.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "kplan/error.hpp"

namespace kplan::jit {

namespace {

/// Why the file cannot be a library, or empty. It is not opened as one: a plugin is not loaded before it is needed.
std::string why_no_library(const char* path) {
  if (access(path, R_OK) != 0) return std::string("cannot be read (") + std::strerror(errno) + ")";
  std::error_code ignored;
  std::string beginning(SELFMAG, '\0');
  if (std::filesystem::is_regular_file(path, ignored)) std::ifstream(path).read(beginning.data(), SELFMAG);
  return beginning == ELFMAG ? "" : "is no shared library";
}

}  // namespace

const Settings& settings() {
  static const Settings the = [] {
    const char* jit = std::getenv("KPLAN_JIT");
    const std::string_view word = jit == nullptr ? "" : jit;
    if (!word.empty() && word != "off" && word != "wait" && word != "on")
      throw PlanError("KP-E010", "the environment variable KPLAN_JIT is `" + std::string(word) +
                                     "`; set it to `off` or `wait`, or unset it for `on`");
    return Settings{word == "off", word == "wait"};
  }();
  return the;
}

bool keeps_code() {
  const char* text = secure_getenv("KPLAN_CACHE");
  const std::string_view word = text == nullptr ? "" : text;
  if (word.empty() || word == "on") return true;
  if (word == "off") return false;
  throw PlanError("KP-E011", "the environment variable KPLAN_CACHE is `" + std::string(word) +
                                 "`; set it to `on` or `off`, or unset it for `on`; KPLAN_CACHE_DIR names a directory");
}

std::uint64_t cache_limit_bytes() {
  const char* text = secure_getenv("KPLAN_CACHE_LIMIT");
  const std::string_view value = text == nullptr ? "" : text;
  std::uint64_t mib = 256;
  const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), mib);
  const bool is_number = status == std::errc() && end == value.data() + value.size() && mib >= 1 && mib <= 1 << 30;
  if (value.empty() || is_number) return mib << 20;
  throw PlanError("KP-E011", "the environment variable KPLAN_CACHE_LIMIT is `" + std::string(value) +
                                 "`; set it to a number of MiB from 1 to 1073741824, or unset it for 256");
}

std::vector<std::string_view> checked_variables() {
  (void)settings();
  (void)keeps_code();
  (void)cache_limit_bytes();
  if (const char* plugin = std::getenv("KPLAN_PLUGIN"); plugin != nullptr && *plugin != '\0')
    if (const std::string reason = why_no_library(plugin); !reason.empty())
      throw PlanError("KP-E012", "the environment variable KPLAN_PLUGIN is `" + std::string(plugin) + "`, which " +
                                     reason + "; set it to the path of libkplan_llvm.so, or unset it");
  return {"KPLAN_JIT", "KPLAN_CACHE", "KPLAN_CACHE_DIR", "KPLAN_CACHE_LIMIT", "KPLAN_PLUGIN"};
}

}  // namespace kplan::jit
