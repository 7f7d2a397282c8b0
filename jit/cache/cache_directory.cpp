// How it works: whoever can write in the directory can make this process run code, so its owner and its permissions are
// looked at on the open directory itself, every time: what lies beneath is reached through its descriptor only.
#include "jit/cache/cache_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "jit/settings.hpp"

namespace kplan::jit {
namespace {

std::string_view variable(const char* name) {
  const char* value = secure_getenv(name);
  return value == nullptr ? std::string_view() : value;
}

/// Makes the directory and those above it; what fails shows when it is opened.
void make_directories(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    mkdir(path.substr(0, slash).c_str(), 0700);
  mkdir(path.c_str(), 0700);
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

std::string cache_path() {
  if (!keeps_code()) return "";
  if (const auto named = variable("KPLAN_CACHE_DIR"); !named.empty()) return std::string(named);
  // The XDG base directory specification: a path that is not absolute is to be ignored.
  if (const auto base = variable("XDG_CACHE_HOME"); base.starts_with('/')) return std::string(base) + "/kplan";
  if (const auto home = variable("HOME"); home.starts_with('/')) return std::string(home) + "/.cache/kplan";
  return "";
}

Descriptor open_cache_directory(const std::string& path, std::string& why_not) {
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  Descriptor out(open(path.c_str(), flags));
  if (!out && errno == ENOENT) {
    make_directories(path);
    out = Descriptor(open(path.c_str(), flags));
  }
  struct stat about {};
  if (!out || fstat(out.number(), &about) != 0) {
    why_not = path + ": " + std::strerror(errno);
    return {};
  }
  if (about.st_uid != geteuid()) {
    why_not = path + " belongs to user " + std::to_string(about.st_uid) + ", not to " + std::to_string(geteuid());
    return {};
  }
  if ((about.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    why_not = path + " can be written by others";
    return {};
  }
  return out;
}

}  // namespace kplan::jit
