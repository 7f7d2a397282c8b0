// How it works: children are found by /proc/self/exe and write into a file without a name, which is read when they are
// done. A variable tells them that they are children. Every other process gets a cache folder of its own before main.
#include "processes.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#ifndef KPLAN_FAKE_GENERATOR
#define KPLAN_FAKE_GENERATOR ""
#endif

namespace kplan::test {
namespace {

/// Tests never see the user's cache.
struct OwnCache {
  OwnCache() {
    if (std::getenv("KPLAN_TEST_CHILD") == nullptr) setenv("KPLAN_CACHE_DIR", folder().c_str(), 1);
  }
  static const std::string& folder() {
    static const TemporaryFolder the;
    return the.path();
  }
} own_cache;

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string name = std::filesystem::temp_directory_path() / "kplan-test-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

long Ended::number(const std::string& word) const {
  const auto at = output.find(word + " ");
  return at == std::string::npos ? -1 : std::atol(output.c_str() + at + word.size() + 1);
}

Child::Child(const std::string& test, const Environment& environment) {
  output_ = memfd_create("output", MFD_CLOEXEC);
  std::vector<std::string> variables = {"KPLAN_TEST_CHILD=1"};
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  variables.push_back("KPLAN_JIT=");  // unless it was given: the first one counts
  const auto is_set = [&](std::string_view entry) {
    for (const std::string& v : variables) {
      if (entry.starts_with(v.substr(0, v.find('=') + 1))) return true;
    }
    return false;
  };
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!is_set(*entry)) variables.push_back(*entry);
  std::vector<char*> pointers;
  for (std::string& v : variables) pointers.push_back(v.data());
  pointers.push_back(nullptr);
  std::string program = "/proc/self/exe", name;
  for (char c : test) name += c == ',' ? std::string("\\,") : std::string(1, c);  // commas separate names
  char path[4096] = {};
  if (readlink(program.c_str(), path, sizeof path - 1) > 0) program = path;
  char* arguments[] = {program.data(), name.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output_, 1);
  posix_spawn_file_actions_adddup2(&actions, output_, 2);
  if (posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, pointers.data()) != 0)
    throw std::runtime_error("cannot start " + program);
  posix_spawn_file_actions_destroy(&actions);
}

Ended Child::finish() {
  Ended out;
  int status = 0;
  waitpid(pid_, &status, 0);
  out.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  char buffer[4096];
  off_t at = 0;
  for (ssize_t got; (got = pread(output_, buffer, sizeof buffer, at)) > 0; at += got)
    out.output.append(buffer, static_cast<std::size_t>(got));
  close(output_);
  // No test of that name is no success.
  if (out.status == 0 && out.output.find("All tests passed") == std::string::npos) out.status = 255;
  return out;
}

void Child::kill() { ::kill(pid_, SIGKILL); }

std::string fake_generator() { return KPLAN_FAKE_GENERATOR; }

}  // namespace kplan::test
