#pragma once
// The code generator of this process: the plugin, opened on the first need, and one call at a time into it.

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "jit/plugin_loader.hpp"
#include "jit/statistics.hpp"

namespace kplan::jit {

/// Whether somebody waits for the result.
enum class Urgency { somebody_waits, background };

/// The process's generator. Thread-safe.
class Generator {
 public:
  static Generator& instance();

  /// Opens the plugin if that was not tried yet. False when there is none; `why_not` says why.
  bool is_available();
  std::string why_not();

  /// The image of the spec's code. Calls that somebody waits for go before those of the background. Adds its times to
  /// the statistics. Throws CompilerError.
  std::vector<std::byte> generate(const Spec& spec, Urgency urgency, Statistics& times);
  /// IR (0) or assembly (1). Throws CompilerError.
  std::string listing(const Spec& spec, int what);

  /// Microseconds that opening the plugin took; 0 when it was not tried.
  double load_us() const { return is_open_.load(std::memory_order_acquire) ? load_us_ : 0; }

  /// Around a fork, so that it comes between two calls of the plugin.
  void before_fork();
  void after_fork(bool is_child);

 private:
  class Turn;
  Generator() = default;
  void open();

  std::atomic<bool> is_open_{false};  ///< opening was tried
  LoadedPlugin plugin_;
  double load_us_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_busy_ = false;
  int urgent_ = 0;  ///< who wait for their turn
};

}  // namespace kplan::jit
