#pragma once
// Planes of buffers that a run's parameters choose (analysis/planes.hpp): where they lie.

#include <vector>

#include "engine/runtime/program.hpp"

namespace kplan {

class MovingPlanes {
 public:
  /// Those of statements in which some rank moves something.
  explicit MovingPlanes(const Program& program);

  bool empty() const { return planes_.empty(); }
  /// Puts them where the parameters of now say, in the memory of their buffers. Throws PlanError, on all ranks alike,
  /// where one is outside its buffer.
  void put(const BoundPlan& bound, std::vector<BoundMemory>& memory) const;
  /// Puts them, and copies of all else that is written, in memory that it returns: for a run that is to leave nothing
  /// behind. Cost: that of the copies.
  std::vector<std::vector<std::byte>> put_aside(const Program& program, std::vector<BoundMemory>& memory) const;

 private:
  struct Moving {
    const Statement* statement;
    const Expr* reference;
    /// What is the value of a parameter, from 0 to `last`.
    struct Index {
      std::size_t parameter;
      std::int64_t last, stride_bytes;
    };
    std::vector<Index> indices;
    bool is_plain = true;  ///< all its indices are
  };
  static std::int64_t offset_bytes(const BoundPlan& bound, const Moving& plane);

  std::vector<Moving> planes_;
};

}  // namespace kplan
