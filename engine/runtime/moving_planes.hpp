#pragma once
// Planes of buffers that a run's parameters choose (analysis/planes.hpp): where they lie.

#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "engine/analysis/index_program.hpp"
#include "engine/runtime/program.hpp"

namespace kplan {

class MovingPlanes {
 public:
  /// Those of statements in which some rank moves something, as far as it is known.
  explicit MovingPlanes(const Program& program);

  bool empty() const { return planes_.empty(); }
  /// Puts them where the parameters of now say, in the memory of their buffers. Where one is outside its buffer, on all
  /// ranks alike, the run is to leave nothing behind: what is wrong is returned, else null, and until take_back() all
  /// that is written lies in copies. Cost: that of the copies then. Planes of varying patterns alone, which may be
  /// empty in this run, have no memory then.
  std::exception_ptr put(const Program& program, std::vector<BoundMemory>& memory);
  /// At the end of a run: whether `memory` had been replaced, and is what was bound now.
  bool take_back(std::vector<BoundMemory>& memory) {
    if (bound_.empty()) [[likely]]
      return false;
    memory = std::exchange(bound_, {});
    return true;
  }

 private:
  struct Moving {
    const Statement* statement;
    const Expr* reference;
    /// From 0 to `last`.
    struct Index {
      IndexProgram value;
      std::int64_t last, stride_bytes;
    };
    bool may_be_outside;  ///< no fixed pattern has it
    std::vector<Index> indices;
    bool is_plain = true;  ///< all its indices are here
  };
  static std::optional<std::int64_t> offset_bytes(const BoundPlan& bound, const Moving& plane);
  void put_inside(const BoundPlan& bound, std::vector<BoundMemory>& memory) const;
  void put_aside(const Program& program, std::vector<BoundMemory>& memory);

  std::vector<Moving> planes_;
  std::vector<BoundMemory> bound_;             ///< while a run works on copies, else empty
  std::vector<std::vector<std::byte>> aside_;  ///< the copies of the last such run
};

}  // namespace kplan
