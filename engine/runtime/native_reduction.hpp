#pragma once
// Operators that are C++ functions registered with the engine (language.md section 4), called once per block of
// elements, as MPI's are.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/analysis/access_pattern.hpp"
#include "kplan/engine.hpp"
#include "plans/model.hpp"

namespace kplan {

/// The program's memory of one buffer.
struct BoundMemory {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  bool is_seldom_written = false;  ///< by the program
};

/// By the name that plans use.
using NativeOperators = std::map<std::string, std::shared_ptr<const NativeOperator>>;

/// The operator of a reduction. Throws PlanError KP-B030 when it is not registered.
std::shared_ptr<const NativeOperator> find_operator(const NativeOperators& operators, const PlanModel& plan,
                                                    const Statement& s, const Reduction& r);

/// Applies a message's values to places by a native operator. Allocates nothing once made.
class NativeReduction {
 public:
  /// `piece` has the place's and the message's track.
  NativeReduction(const Reduction& r, std::shared_ptr<const NativeOperator> op, const Piece& piece);

  void operator()(std::byte* places, const std::byte* message);

 private:
  std::shared_ptr<const NativeOperator> op_;
  Scalar place_scalar_, value_scalar_;
  bool is_converted_;
  std::size_t place_bytes_, value_bytes_;
  std::vector<std::int64_t> places_, sources_;  ///< byte offsets of the elements, in order
  std::vector<std::size_t> block_ends_;
  std::vector<std::byte> gathered_, values_;  ///< one block
};

}  // namespace kplan
