#pragma once
// A variable of the environment, for the time of a test.

#include <cstdlib>
#include <optional>
#include <string>

namespace kplan::tests {

/// Sets a variable while it lives, and puts back what it was. Not while threads run that may read it.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value, 1);
  }
  ~Variable() {
    if (before_) setenv(name_, before_->c_str(), 1);
    else unsetenv(name_);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace kplan::tests
