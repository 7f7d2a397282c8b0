#pragma once
// This rank's values of the uniform parameters that a program may set between runs, as ranks compare them.

#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "engine/analysis/bound_plan.hpp"

namespace kplan {

/// With whom a rank compares in any case, so that wherever two ranks differ some two do that compare: ascending,
/// without itself.
std::vector<int> ring_neighbours(int rank, int size);

/// What a rank has in some run: one word a parameter or two, as its type needs. Equal values are the same words.
struct UniformWords {
  int rank = 0;
  std::span<const std::uint64_t> words;
};

class UniformValues {
 public:
  explicit UniformValues(const PlanModel& plan);

  /// How many words the values are; none where there are no such parameters.
  std::size_t size() const { return words_.size(); }
  std::size_t bytes() const { return words_.size() * sizeof words_[0]; }
  void read(const BoundPlan& bound);
  std::span<const std::uint64_t> words() const { return words_; }
  /// KP-A002: what two ranks have set differently for a run. Null where that is nothing.
  std::exception_ptr difference(std::uint64_t run, UniformWords one, UniformWords other) const;

 private:
  /// A parameter, and how many words it takes.
  struct Part {
    std::size_t parameter = 0, words = 0;
    bool may_be_no_number = false;
  };

  const PlanModel& plan_;
  std::vector<Part> parts_;
  std::vector<std::uint64_t> words_;
};

}  // namespace kplan
