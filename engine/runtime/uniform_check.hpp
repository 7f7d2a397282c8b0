#pragma once
// Uniform parameters that a program has set for the runs that follow, where patterns vary: every rank compares its
// values with those of its two neighbours in a ring, so that wherever two ranks differ, some two that are compared do.
// Letters that neighbours send each other in every run may carry a hash of the values, and only those whose hashes
// differ compare them. See uniform_history.hpp for patterns that are fixed.

#include <exception>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/runtime/uniform_values.hpp"
#include "kplan/transport.hpp"

namespace kplan {

/// Hashes those of the varying values that must be the same on all ranks which one statement's letters vouch for: all
/// parameters, and the contents that decide its pattern.
class UniformHash {
 public:
  UniformHash(const PlanModel& plan, const Statement& s);
  /// Cost: that of reading the contents.
  std::uint64_t of(const BoundPlan& bound) const;

 private:
  std::vector<int> parameters_, buffers_;
};

class UniformCheck {
 public:
  /// Collective. Does nothing for plans without uniform varying parameters or varying patterns.
  UniformCheck(const PlanModel& plan, bool do_patterns_vary, transport::Transport& transport,
               transport::Clock::time_point deadline);

  /// Notes that such a parameter was set: the next run compares. All ranks set them before the same run.
  void note_set() { is_new_ = true; }
  void forget_set() { is_new_ = false; }

  /// With whom the run that begins is to compare: ranks, ascending; none if there is nothing new, unless it `must`.
  std::span<const int> due(bool must) {
    const bool is_due = std::exchange(is_new_, false) || must;
    return is_due && exchange_ ? std::span<const int>(neighbours_) : std::span<const int>();
  }
  /// Begins the comparison with some of the neighbours, who compare with this rank, for a run.
  void begin(const BoundPlan& bound, std::uint64_t run, std::span<const int> neighbours);
  /// Whether it is under way: not all neighbours' values have come.
  bool is_comparing() const { return is_comparing_; }
  /// What it has found so far: KP-A002 or null.
  std::exception_ptr look();
  std::vector<int> waits_for() const { return exchange_->waits_for(); }

 private:
  std::exception_ptr compared() const;

  int rank_;
  UniformValues values_;
  std::uint64_t run_ = 0;
  std::unique_ptr<transport::SparseExchange> exchange_;
  std::vector<int> neighbours_;
  std::vector<int> asked_;  ///< those of the comparison under way
  /// What they are told, which the exchange keeps as long as it may be read.
  std::shared_ptr<std::vector<std::uint64_t>> mine_;
  std::vector<transport::OutgoingLetter> letters_;
  bool is_new_ = false, is_comparing_ = false;
};

}  // namespace kplan
