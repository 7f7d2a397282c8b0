#pragma once
// Walks through the environments of boxes in which constraints are left undecided that hang on the contents of buffers,
// or on bits of numbers: halves of such boxes would fall apart into single environments.

#include "engine/analysis/walk.hpp"

namespace kplan {

class BoxWalker {
 public:
  /// `formula` must live as long.
  explicit BoxWalker(const Formula& formula);
  BoxWalker(const BoxWalker&) = delete;
  BoxWalker& operator=(const BoxWalker&) = delete;

  enum class End : std::uint8_t {
    whole,   ///< all environments have been met
    early,   ///< they are so many that parts of the box had better be looked at
    faulty,  ///< with the first BlockFault, of f or of the where-list
  };
  struct Outcome {
    End end = End::whole;
    std::optional<Box> faulty = {};  ///< a part of the box in which the fault is
  };
  /// Calls f(block) for blocks of the box's environments that pass the filters, in order; the rest of what is below is
  /// for f.
  Outcome walk(const Box& box, const std::function<void(Block&)>& f);
  /// Of the last walk.
  std::int64_t steps() const { return walk_.steps(); }

  /// As the evaluator of the box sees it; where there are several, nothing names it.
  const RankState& state() const { return state_; }
  ColumnProgram program(const Expr& e) { return walk_.columns().program(e, ColumnProgram::Form::integers); }
  /// Valid until the next call.
  const Column& values(ColumnProgram& program, const Block& block);
  /// Keeps the environments in which f(value) holds.
  template <class F>
  void keep_where(ColumnProgram& program, Block& block, const F& f) {
    values(program, block);
    for (std::size_t row = 0; row < block.count; ++row) values_[row] = f(values_[row]) ? 1 : 0;
    walk_.keep(values_, block);
  }
  /// The environments as in Box::only, the evaluator left out, for a box whose sets are all known. Valid until the next
  /// call.
  const std::vector<std::uint64_t>& keys(const Box& box, const Block& block);

 private:
  const Statement& s_;
  RankState state_;
  Walk walk_;
  Column values_;
  std::vector<std::uint64_t> keys_;
};

/// Whether a walk is better than to split the box by one of the numbers in `needs`, for which what is undecided waits.
/// `ranks`: expressions that the walk looks at besides the where-list.
bool is_to_be_walked(const Formula& formula, const Box& box, Formula::Mask needs,
                     const std::vector<const Expr*>& undecided, const std::vector<const Expr*>& ranks);

/// The box where sets that are not known have all values between their bounds.
Box with_all_sets(const Formula& formula, Box box);

/// Restricts a box of one evaluator to the environments, which are ascending.
void restrict_to(Box& box, std::vector<std::uint64_t> only);

}  // namespace kplan
