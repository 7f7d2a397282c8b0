#pragma once
// Rows of a where-list by machine code, ready to be found again and again.

#include <span>
#include <vector>

#include "engine/lower/row_call.hpp"
#include "jit/compiler.hpp"

namespace kplan {

class ReadyRows {
 public:
  /// For a rank whose number, size and layouts do not change. Throws CompilerError where it waits for the code.
  ReadyRows(RowCall call, const RankState& state, jit::Wait wait);

  const RowCall& call() const { return call_; }

  /// Where the code writes, and how many rows there is room for and were found: by part, as the call has columns.
  struct Target {
    std::span<std::int64_t* const> columns;
    std::span<const std::int64_t> room;
    std::span<std::int64_t> rows;
  };
  /// `state`: with the values of this run. `given`: the given scalar; `tables`: arrays that are no buffers. Leaves
  /// where there is no code (yet), where contents are not known, and where something is not plain: then someone else
  /// must find the rows, or what is wrong with them.
  jit::RowsOutcome run(const RankState& state, std::int64_t given, std::span<const std::byte* const> tables,
                       const Target& target);

 private:
  RowCall call_;
  jit::RowKernel kernel_;
  std::vector<std::int64_t> scalars_;
  std::vector<std::size_t> parameters_;  ///< scalars that are parameters
  std::optional<std::size_t> given_;     ///< the given one
  std::vector<const std::byte*> arrays_;
};

}  // namespace kplan
