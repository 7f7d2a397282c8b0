#pragma once
// A thread of the process that works while there is work, and is gone when the process ends.

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace kplan::jit {

/// Runs a function on a thread of its own, again and again while it returns true, whenever it was woken.
class Background {
 public:
  explicit Background(std::function<bool()> work) : work_(std::move(work)) {}

  /// Starts the thread on the first call. False where there is none to be had, or the process is ending.
  bool wake();
  /// Whether the work in hand shall come to an end soon.
  bool is_stopping() const { return is_stopping_.load(std::memory_order_relaxed); }
  /// Ends the thread and waits for it; none is started any more.
  void stop();

  /// Around a fork; a child has no thread, until it wakes one.
  void before_fork() { mutex_.lock(); }
  void after_fork(bool is_child);

 private:
  static void* main(void* background);
  void loop();
  bool start();

  std::function<bool()> work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> is_stopping_{false};
  bool is_woken_ = false, is_started_ = false;
  pthread_t thread_{};
};

}  // namespace kplan::jit
