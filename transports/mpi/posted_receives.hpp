#pragma once
// Receives that are started ahead of their messages. Open MPI looks through all that are started for one peer whenever
// something comes from it: those of channels that are not in use make all others slow. So they are withdrawn, and
// started again when their message is looked for, or when this rank waits long for something else: a peer may have to
// be rid of a message before it goes on to that.

#include <vector>

namespace kplan::transport::mpi_backend {

/// A receiving end whose receives can be withdrawn: of messages so short that they leave their sender all the same.
class Postable {
 public:
  virtual ~Postable() = default;
  Postable() = default;
  Postable(const Postable&) = delete;
  Postable& operator=(const Postable&) = delete;

  /// Starts the receives that there is memory for.
  virtual void post() = 0;
  /// Withdraws those that no message has found.
  virtual void withdraw() = 0;

 private:
  friend class PostedReceives;
  bool was_used_ = false, is_posted_ = false;
};

/// Those of one world.
class PostedReceives {
 public:
  void enter(Postable* end) { ends_.push_back(end); }
  void leave(Postable* end) { std::erase(ends_, end); }

  /// The end has started receives.
  void note(Postable& end) {
    end.was_used_ = end.is_posted_ = true;
    if (++notes_ % notes_a_sweep == 0) [[unlikely]]
      withdraw_idle();
  }
  /// Starts them all.
  void post_all() {
    for (Postable* end : ends_)
      if (!end->is_posted_) end->post();
  }

 private:
  /// Ends that started none since so many others have been started are not in use.
  static constexpr unsigned notes_a_sweep = 256;

  void withdraw_idle() {
    for (Postable* end : ends_) {
      if (end->is_posted_ && !end->was_used_) {
        end->is_posted_ = false;
        end->withdraw();
      }
      end->was_used_ = false;
    }
  }

  std::vector<Postable*> ends_;
  unsigned notes_ = 0;
};

}  // namespace kplan::transport::mpi_backend
