#pragma once
// Index expressions over parameters alone as steps on one value: runs that meet new parameters evaluate them, in a
// tenth of the time that the tree takes.

#include <cstdint>
#include <vector>

#include "plans/evaluate.hpp"

namespace kplan {

class IndexProgram {
 public:
  /// `world_size`: what `size` is in the expression.
  IndexProgram(const Expr& e, std::int64_t world_size);

  /// Whether there are steps that say it all: for sums, differences, products, quotients and remainders of parameters
  /// of i64 and constants.
  bool is_complete() const { return is_complete_; }
  /// False where it has no value, as evaluate_index() would say. Only if it is_complete().
  bool evaluate(const std::vector<ScalarValue>& parameters, std::int64_t& value) const;

 private:
  enum class Kind : std::uint8_t { load, push, add, sub, mul, div, mod };
  enum class From : std::uint8_t { constant, parameter, stack };
  /// Works on a value: takes it from somewhere, puts it on the stack, or combines it with the operand on the right;
  /// with what is on the stack on its left.
  struct Step {
    Kind kind = Kind::load;
    From from = From::constant;
    std::int64_t operand = 0;  ///< or the parameter's number
  };

  bool find_leaf(const Expr& e, Step& step) const;
  bool add(const Expr& e, std::size_t depth);

  std::int64_t world_size_;
  std::vector<Step> steps_;
  bool is_complete_;
};

}  // namespace kplan
