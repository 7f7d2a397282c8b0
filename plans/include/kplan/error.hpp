#pragma once
// What kplan throws. One base, one type per kind of cause, so that a program can tell a mistake of its own
// from a plan kplan cannot run yet, a failing compiler, a failing peer, and a bug of ours. Every error has a
// code of the form KP-P012; the message says where, what with the values, and how to fix it.

#include <stdexcept>
#include <string>
#include <utility>

namespace kplan {

/// The base of everything kplan throws on purpose. The first line of `what()` ends with the code in brackets; where
/// the error lies in a text, lines follow that show it underlined.
class Error : public std::runtime_error {
 public:
  Error(std::string code, const std::string& message, const std::string& detail = "")
      : std::runtime_error(message + " [" + code + "]" + (detail.empty() ? "" : "\n" + detail)),
        code_(std::move(code)) {}

  /// The code alone, for programs and tests: `KP-P012`.
  const std::string& code() const noexcept { return code_; }

 private:
  std::string code_;
};

/// The plan, the values or the buffers given by the user are wrong. Thrown on every rank of Engine::compile; what a rank
/// does wrong by itself, as when it binds buffers, sets parameters or starts a run, is thrown there alone.
class PlanError : public Error {
 public:
  using Error::Error;
};

/// The plan is right, and this version of kplan cannot run it.
class Unsupported : public Error {
 public:
  using Error::Error;
};

/// Data met during a run made it fail: a zero divisor in a value, say. Places may have been written in part.
class RunError : public Error {
 public:
  using Error::Error;
};

/// A kernel could not be compiled or loaded.
class CompilerError : public Error {
 public:
  using Error::Error;
};

/// A peer or the network failed, or a wait timed out. The transport cannot be used afterwards.
class TransportError : public Error {
 public:
  using Error::Error;
};

/// kplan itself is wrong. Please report it with the message.
class InternalError : public Error {
 public:
  using Error::Error;
};

}  // namespace kplan
