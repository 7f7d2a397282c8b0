// How it works: one flag says that there may be work. The thread takes no signals, which are the program's, and has the
// stack of a program's main thread, since code generators recurse.
#include "jit/background.hpp"

#include <csignal>
#include <new>
#include <utility>

namespace kplan::jit {
namespace {

constexpr std::size_t stack_bytes = 8 << 20;

}  // namespace

bool Background::wake() {
  {
    std::lock_guard lock(mutex_);
    if (is_stopping() || (!is_started_ && !start())) return false;
    is_woken_ = true;
  }
  changed_.notify_one();
  return true;
}

bool Background::start() {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setstacksize(&attributes, stack_bytes);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  is_started_ = pthread_create(&thread_, &attributes, main, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return is_started_;
}

void* Background::main(void* background) {
  pthread_setname_np(pthread_self(), "kplan-compiler");
  static_cast<Background*>(background)->loop();
  return nullptr;
}

void Background::loop() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_woken_ || is_stopping(); });
      is_woken_ = false;
    }
    while (!is_stopping() && work_()) {
    }
    if (is_stopping()) return;
  }
}

void Background::stop() {
  bool is_to_join = false;
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
    is_to_join = std::exchange(is_started_, false);
  }
  changed_.notify_one();
  if (is_to_join) pthread_join(thread_, nullptr);
}

void Background::after_fork(bool is_child) {
  if (is_child) {
    is_started_ = is_woken_ = false;
    new (&changed_) std::condition_variable;
  }
  mutex_.unlock();
}

}  // namespace kplan::jit
