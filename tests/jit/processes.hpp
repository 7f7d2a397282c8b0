#pragma once
// Tests that need a process of their own: this program runs again with one hidden test, and folders that go with the
// test that made them.

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace kplan::test {

/// A folder that is removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

/// How a process ended: its exit code, or minus the signal that killed it; and what it printed.
struct Ended {
  int status = 0;
  std::string output;
  /// The number behind a word in the output; -1 when it is not there.
  long number(const std::string& word) const;
};

/// A hidden test of this program in a process of its own, with more variables in its environment.
class Child {
 public:
  Child(const std::string& test, const Environment& environment);
  /// Waits for its end. Once.
  Ended finish();
  void kill();

 private:
  pid_t pid_ = -1;
  int output_ = -1;
};

inline Ended run_child(const std::string& test, const Environment& environment = {}) {
  return Child(test, environment).finish();
}

/// The path of a code generator that makes kernels that do nothing but return 77, see plugin/fake_generator.cpp; empty
/// where it was not built.
std::string fake_generator();

}  // namespace kplan::test
