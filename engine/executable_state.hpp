#pragma once
// What an Executable owns: the values it was compiled with and the runner of its program.

#include <cstdint>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "engine/bind.hpp"
#include "engine/runtime/run.hpp"
#include "kplan/engine.hpp"

namespace kplan {

class PlanCache;

struct Executable::State {
  BoundValues values;  ///< keeps the contents of fixed buffers
  Runner runner;
  CompileTimes times;
  std::vector<std::shared_ptr<std::byte>> owners;  ///< by buffer, of memory that is bound; null: the program
  std::weak_ptr<PlanCache> cache;                  ///< where it goes when the program is done with it
  std::uint64_t entry = 0;                         ///< the plan's number in the cache, the same on all ranks
  std::uint64_t serial = 0;                        ///< this state's own number, the same on all ranks
  std::set<int> touched, written;                  ///< buffers that runs read or write on this rank; those written
  bool is_checked = false;                         ///< bindings are complete and do not overlap

  State(BoundValues v, Runner r);

  const PlanModel& plan() const { return *runner.program().bound.model; }
  void find_touched();
  std::size_t find_buffer(std::string_view name) const;
  void bind(std::size_t b, const Memory& memory);
  /// Every buffer that is touched is bound, and what is written overlaps nothing.
  void check_bindings();
  /// As it was when it was made: no memory bound but that of fixed buffers, varying parameters at their first values.
  void reset();
};

}  // namespace kplan
