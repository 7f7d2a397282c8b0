#pragma once
// Integer expressions over many environments at once: steps, each a loop over columns of 64-bit integers.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/analysis/unfilled.hpp"
#include "plans/evaluate.hpp"

namespace kplan {

/// A word for every environment of a block, and perhaps room for more.
using Column = Words;

/// The words of a column that shall have `count` of them.
[[gnu::hot]] inline std::int64_t* room_in(Column& column, std::size_t count) {
  if (column.size() < count) column.resize(std::max(count, 2 * column.size()));
  return column.data();
}

/// Environments in order, as columns by where-bound variable. Those of variables that are not bound yet have no
/// meaning.
struct Block {
  static constexpr std::size_t most_rows = 1024;

  std::size_t count = 0;
  std::vector<Column> words;      ///< integers, or the first word of the value
  std::vector<Column> second;     ///< the second word, where the type has one
  std::vector<Column> positions;  ///< a generator's position in its set, if wanted

  explicit Block(std::size_t variables = 0) : words(variables), second(variables), positions(variables) {}
};

/// The values of an expression in every environment of a block: one for all of them, or a column.
struct ColumnOperand {
  const std::int64_t* column = nullptr;
  std::int64_t value = 0;
};

class ColumnProgram {
 public:
  enum class Form : std::uint8_t {
    integers,  ///< the values of an expression, integers or booleans
    elements,  ///< offsets in elements of a reference to one element
    runs,      ///< of a reference that names_strided_runs: the first element, and how many there are
  };
  /// What a step reads.
  struct Source {
    enum class Kind : std::uint8_t { value, rank, size, parameter, variable, slot, extent, element_count };
    Kind kind = Kind::value;
    std::int32_t number = 0;  ///< of the parameter, variable, slot or buffer
    std::int64_t value = 0;   ///< value; extent: the dimension
  };
  struct Step {
    enum class Kind : std::uint8_t { copy, combine, choose, negate, wrap, add_index, load, lengths };
    Kind kind = Kind::copy;
    Operation operation = Operation::add;  ///< combine
    Scalar type = Scalar::i64;             ///< wrap, load
    std::int32_t to = 0;                   ///< the slot that is written; lengths: and the one behind it
    Source a = {}, b = {}, c = {};
    std::int32_t buffer = -1;  ///< add_index, load, lengths
    std::int32_t dimension = 0;
    std::size_t element_bytes = 0, offset_bytes = 0;  ///< load
  };

  /// `e` must live as long as the program. Layouts of buffers may change from run to run, but not their dimensions.
  ColumnProgram(const Expr& e, Form form, const RankState& state);

  const Expr& expression() const { return *e_; }
  Form form() const { return form_; }
  /// Whether there are steps that say it all.
  bool is_complete() const { return is_complete_; }
  /// They leave the values in slot 0, of runs the counts in slot 1.
  std::span<const Step> steps() const { return steps_; }

  /// Writes a value for every environment; `counts` only of runs. False where they cannot all be had by loops (reals,
  /// faults, faults in what `?:` leaves out): then environments must be taken one by one.
  bool run(const RankState& state, const Block& block, std::int64_t* values, std::int64_t* counts = nullptr);

 private:
  /// These add the steps of an expression, and say where its values are: in slot `to` where a step has made them.
  std::optional<Source> add(const Expr& e, std::int32_t to);
  std::optional<Source> add_pair(Operation operation, const Expr& e, std::int32_t to);
  std::optional<Source> add_operation(const Expr& e, std::int32_t to);
  std::optional<Source> add_choice(const Expr& e, std::int32_t to);
  std::optional<Source> add_step(Step step);
  bool add_offsets(const Expr& e, std::int32_t to);
  bool add_runs(const Expr& e);
  void copy_to(Source from, std::int32_t to);

  ColumnOperand operand(const Source& source, const RankState& state, const Block& block) const;
  bool run_steps(const RankState& state, const Block& block, std::int64_t* values, std::int64_t* counts);
  bool run_step(const Step& step, std::size_t count, const RankState& state, const Block& block);

  const Expr* e_;
  Form form_;
  const RankState* checked_ = nullptr;  ///< while steps are added
  bool is_complete_ = false;
  bool is_plain_ = false;  ///< all there is to do is to copy
  std::vector<Step> steps_;
  std::vector<Column> memory_;        ///< by slot; empty for what the caller has room for
  std::size_t room_ = 0;              ///< environments that there is memory for
  std::vector<std::int64_t*> slots_;  ///< where they are at this run
};

}  // namespace kplan
