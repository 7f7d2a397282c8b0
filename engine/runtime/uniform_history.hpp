#pragma once
// How ranks with fixed patterns compare the uniform parameters that a program sets between runs, without waiting for
// each other more than their data makes them do. A rank notes the values that are set for a run. It tells those that it
// sends anything in that run at once, behind a short message that goes there anyway, or through a channel of its own,
// and they compare them in the same run with what they have noted for it: no rank takes what was made with other values
// for good. Wherever two ranks differ, some two neighbours in a ring do, too, so these are told in any case: every few
// runs, or while this rank waits for something.

#include <exception>
#include <memory>
#include <vector>

#include "engine/runtime/uniform_values.hpp"
#include "kplan/transport.hpp"

namespace kplan {

class UniformHistory {
 public:
  static constexpr int slots = 4;

  /// One end of a channel between two ranks that compare: neighbours, or those that send each other anything.
  struct End {
    int rank = 0;
    transport::Direction direction = transport::Direction::send;
    bool is_due = false;  ///< in the run for which values are set: its data goes the same way
    std::unique_ptr<transport::Channel> channel = nullptr;
    std::uint64_t next = 0;  ///< message
    /// The entry that is to be told next; or the one that was current in the run that the other has told of last.
    std::size_t entry = 0;
    std::uint64_t seen = 0;  ///< time of what it has told last
    std::size_t taken = 0;   ///< entries of the message that has come
  };

  /// The parameters' values are the first ones, which ranks have compared.
  UniformHistory(const BoundPlan& bound, std::vector<End> ends);
  UniformHistory(const UniformHistory&) = delete;
  UniformHistory& operator=(const UniformHistory&) = delete;

  /// Whose channels are to be opened, for messages of that many bytes.
  std::vector<End>& ends() { return ends_; }
  std::size_t message_bytes() const { return word_bytes * (1 + entries_a_message * width_); }

  /// A run begins; note() follows where a parameter was set for it.
  void begin(std::uint64_t run) { time_ = run + 1; }
  void note(const BoundPlan& bound);
  /// Notes the values once more where none were set for the run: neighbours may have set others for it.
  void repeat() {
    if (!ends_.empty() && *entry(end_ - 1) < time_) add();
  }
  /// Whether so much has been noted that others have to come by before a run begins.
  bool is_full() const { return end_ - first_needed() > most_entries; }

  /// This rank's values, as messages carry them.
  void put_values(std::byte* to) const;
  /// What differs in those that a rank's message carries: KP-A002 or null.
  std::exception_ptr compare(int rank, const std::byte* values) const;

  /// Tells what there is room for; whether that is everything.
  bool tell();
  /// Whether everything has been told that is due.
  bool has_told_due() const { return !has_due_ || !is_any_due_behind(transport::Direction::send); }
  /// Whether something is due in this run, or it is one of those in which the rest is looked after.
  bool is_time() const { return !ends_.empty() && (has_due_ || time_ % runs_a_look == 0); }
  /// Tells, and compares what has come: KP-A002 or null.
  std::exception_ptr move_on();
  /// Whether a run cannot end before others have told this rank something.
  bool is_waiting() const { return has_due_ && is_any_due_behind(transport::Direction::receive); }
  /// Whom this rank waits for then, or to tell them something.
  std::vector<int> waits_for() const;

 private:
  static constexpr std::size_t word_bytes = sizeof(std::uint64_t);
  static constexpr std::size_t entries_a_message = 32, most_entries = 4096;
  static constexpr std::uint64_t runs_a_look = 16;

  /// A time, and the values that were set for it.
  const std::uint64_t* entry(std::size_t number) const { return entries_.data() + (number - first_) * width_; }
  std::span<const std::uint64_t> values_of(const std::uint64_t* entry) const { return {entry + 1, width_ - 1}; }
  void add();
  void tell(End& to) const;
  std::exception_ptr compare_with(End& from) const;
  bool is_behind(const End& end) const;
  bool is_any_due_behind(transport::Direction direction) const;
  std::size_t first_needed() const;
  void forget();

  int rank_;
  UniformValues values_;
  std::uint64_t time_ = 0;  ///< number of the run that has begun last, counted from 1
  std::size_t width_;       ///< words of an entry
  std::vector<End> ends_;
  bool has_due_ = false;
  std::vector<std::uint64_t> entries_;
  std::size_t first_ = 0, end_ = 0;  ///< numbers of those that are kept
};

}  // namespace kplan
