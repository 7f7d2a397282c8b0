// How it works: the places are tried in order; the first file that opens and answers is taken. A plugin named by
// KPLAN_PLUGIN is the only one tried. The plugin is never closed: code it made may be running at exit.
#include "jit/plugin_loader.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "generator_identity.hpp"

#ifndef KPLAN_PLUGIN_BUILD_DIR
#define KPLAN_PLUGIN_BUILD_DIR ""
#endif

namespace kplan::jit {
namespace {

constexpr const char* file_name = "libkplan_llvm.so";

/// The folder of the library or program that this code was linked into, with a slash at its end.
std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) return "";
  std::string path = info.dli_fname;
  // A program's own name may be relative to a folder that is no longer the current one.
  char program[4096];
  const ssize_t length =
      path.find(".so") == std::string::npos ? readlink("/proc/self/exe", program, sizeof program) : -1;
  if (length > 0) path.assign(program, static_cast<std::size_t>(length));
  return path.substr(0, path.rfind('/') + 1);
}

std::vector<std::string> places() {
  if (const char* named = std::getenv("KPLAN_PLUGIN"); named != nullptr && *named != '\0') return {named};
  const std::string folder = own_folder();
  std::vector<std::string> out;
  for (const char* below : {"", "../lib/kplan/", "kplan/"}) {
    if (!folder.empty()) out.push_back(folder + below + file_name);
  }
  const std::string_view build = KPLAN_PLUGIN_BUILD_DIR;
  if (!build.empty()) out.push_back(std::string(build) + "/" + file_name);
  return out;
}

LoadedPlugin open(const std::string& path) {
  LoadedPlugin out;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    out.why_not = reason != nullptr ? reason : path + ": cannot be opened";
    return out;
  }
  const auto entry = reinterpret_cast<PluginEntry>(dlsym(library, plugin_symbol));
  PluginFailure failure;
  const PluginRequest request{.identity = generator_identity};
  if (entry != nullptr) out.generator = entry(&request, &failure);
  if (out.generator == nullptr) {
    out.why_not = path + ": " + (entry == nullptr ? "is not a code generator of kplan" : failure.message);
    dlclose(library);
  }
  return out;
}

}  // namespace

LoadedPlugin load_plugin() {
  LoadedPlugin out;
  std::string reasons;
  for (const std::string& path : places()) {
    out = open(path);
    if (out.generator != nullptr) return out;
    // A file that is there and does not work says more than those that are not there.
    const bool exists = access(path.c_str(), F_OK) == 0;
    if (reasons.empty() || exists) reasons = out.why_not;
    if (exists) break;
  }
  out.why_not = reasons.empty() ? "no place to look for the code generator" : reasons;
  return out;
}

}  // namespace kplan::jit
