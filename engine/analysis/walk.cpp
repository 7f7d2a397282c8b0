// How it works: clause by clause, a block of environments is filtered, bound, or multiplied by a generator's set; what
// grows is cut into blocks again, depth first, so that order stays and memory is bounded.
#include "engine/analysis/walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace kplan {

Walk::Walk(const Statement& s, const RankState& state) : s_(s), columns_(s, state), start_(s.variables.size()) {
  using Form = ColumnProgram::Form;
  stages_.reserve(s.clauses.size());
  int bound_count = 0;
  for (const Clause& c : s.clauses) {
    const std::size_t made = c.kind == ClauseKind::generator ? s.variables.size() : 0;
    Stage& stage = stages_.emplace_back(Stage{c, bound_count, all_, {}, {}, Block(made)});
    const auto add = [&](const ExprPtr& e) { stage.programs.push_back(columns_.program(*e, Form::integers)); };
    if (c.expression) add(c.expression);
    if (c.kind == ClauseKind::generator && c.set.kind == Set::Kind::range)
      for (const ExprPtr& e : {c.set.first, c.set.last, c.set.step})
        if (e) add(e);
    stage.limits.resize(stage.programs.size());
    if (c.kind == ClauseKind::filter) continue;
    ++bound_count;
    const auto v = static_cast<std::size_t>(c.variable);
    all_.push_back({&Block::words, v});
    if (word_count(s.variables[v].type) == 2) all_.push_back({&Block::second, v});
    if (c.kind == ClauseKind::generator) all_.push_back({&Block::positions, v});
  }
}

bool Walk::each(const Box& box, std::int64_t most_steps, const std::function<void(Block&)>& f) {
  try {
    run(f, &box, most_steps);
  } catch (const TooLong&) {
    return false;
  }
  return true;
}

void Walk::run(const std::function<void(Block&)>& f, const Box* box, std::int64_t most_steps) {
  steps_ = 0;
  one_by_one_before_ = columns_.count_one_by_one();
  most_steps_ = most_steps;
  f_ = &f;
  box_ = box;
  start_.count = 1;
  expand(0, start_);
}

void Walk::spend(const Clause& clause, std::size_t steps) {
  steps_ += static_cast<std::int64_t>(steps);
  if (steps_ <= most_steps_) return;
  if (box_) throw TooLong{};
  throw BlockFault{
      {"KP-P051",
       fmt::format("the where-list takes more than {} steps; narrow its sets instead of filtering them", most_steps_),
       clause.span},
      0};
}

void Walk::fail(const BlockFault& fault, std::size_t clause, const Block& block) {
  const EvaluationContext context = columns_.context_at(block, fault.row);
  WalkFault out{fault.fault, 0, {context.variables, context.variables + s_.variables.size()}, {}};
  out.bound_count = clause < stages_.size() ? stages_[clause].bound_count : static_cast<int>(s_.variables.size());
  for (const Column& positions : block.positions)
    out.positions.push_back(fault.row < positions.size() ? positions[fault.row] : 0);
  throw out;
}

void Walk::copy(const Block& from, Block& to) const {
  to.count = from.count;
  for (const Bound& b : all_) {
    const Column& column = (from.*b.columns)[b.variable];
    if (!column.empty()) std::copy_n(column.begin(), from.count, room_in((to.*b.columns)[b.variable], from.count));
  }
}

void Walk::keep_rows(const std::vector<Bound>& bound, const Column& entries, Block& block) {
  const auto end = entries.begin() + static_cast<std::ptrdiff_t>(block.count);
  const auto kept = static_cast<std::size_t>(std::count_if(entries.begin(), end, [](auto k) { return k != 0; }));
  if (kept < block.count && kept > 0)
    for (const Bound& b : bound) {
      Column& column = (block.*b.columns)[b.variable];
      if (column.empty()) continue;  // positions that nobody wants
      std::size_t to = 0;
      for (std::size_t row = 0; row < block.count; ++row)
        if (entries[row] != 0) column[to++] = column[row];
    }
  block.count = kept;
}

void Walk::expand(std::size_t clause, Block& block) {
  try {
    for (; clause < stages_.size() && block.count > 0; ++clause) {
      Stage& stage = stages_[clause];
      spend(stage.clause, block.count);
      if (stage.clause.kind == ClauseKind::generator) return generate(clause, block);
      if (stage.clause.kind == ClauseKind::binding) {
        bind(stage, block);
      } else {
        columns_.run(stage.programs[0], block, room_in(keep_, block.count));
        keep_rows(stage.bound, keep_, block);
      }
    }
    if (block.count > 0 && box_) spend(s_.clauses.back(), block.count);
    if (block.count > 0) (*f_)(block);
  } catch (const BlockFault& fault) {
    fail(fault, clause, block);
  }
}

void Walk::bind(Stage& stage, Block& block) {
  const auto v = static_cast<std::size_t>(stage.clause.variable);
  const Scalar type = s_.variables[v].type;
  std::int64_t* const words = room_in(block.words[v], block.count);
  if (is_integer(type) || type == Scalar::boolean) return columns_.run(stage.programs[0], block, words);
  const bool has_two = word_count(type) == 2;
  std::int64_t* const second = has_two ? room_in(block.second[v], block.count) : nullptr;
  for (std::size_t row = 0; row < block.count; ++row) {
    const ScalarValue value = columns_.evaluate_at(*stage.clause.expression, block, row);
    words[row] = word_of(value, 0);
    if (has_two) second[row] = word_of(value, 1);
  }
}

SetValues Walk::set_at(Stage& stage, const Block& block, std::size_t row) {
  const Clause& c = stage.clause;
  try {
    if (c.set.kind == Set::Kind::range)
      return {c.set, stage.limits[0][row], stage.limits[1][row], c.set.step ? stage.limits[2][row] : 1, c.span};
    if (c.set.kind == Set::Kind::ranks) return {c.set, columns_.context(), c.span};
    return {c.set, columns_.context_at(block, row), c.span};
  } catch (const EvaluationFault& fault) {
    throw BlockFault{fault, row};
  }
}

/// What is bound before a generator is the same for all its values.
void Walk::repeat(const Stage& stage, const Block& block, std::size_t row, std::size_t count, Block& next) const {
  for (const Bound& b : stage.bound)
    if (b.columns != &Block::positions || wants_positions_)
      std::fill_n(room_in((next.*b.columns)[b.variable], next.count + count) + next.count, count,
                  (block.*b.columns)[b.variable][row]);
}

void Walk::generate(std::size_t clause, const Block& block) {
  Stage& stage = stages_[clause];
  const auto v = static_cast<std::size_t>(stage.clause.variable);
  const bool is_boxed = box_ && box_->sets[v + 1].is_known;
  for (std::size_t k = 0; k < stage.programs.size() && !is_boxed; ++k)
    columns_.run(stage.programs[k], block, room_in(stage.limits[k], block.count));
  Block& next = stage.made;
  next.count = 0;
  for (std::size_t row = 0; row < block.count; ++row) {
    const std::optional<SetValues> set = is_boxed ? std::nullopt : std::optional(set_at(stage, block, row));
    const Progression part = is_boxed ? box_->positions[v + 1] : Progression{box_ ? set->first() : 0, 1, set->count()};
    for (std::int64_t first = 0; first < part.count;) {
      const std::int64_t room = static_cast<std::int64_t>(Block::most_rows - next.count),
                         count = std::min(part.count - first, room);
      const auto rows = static_cast<std::size_t>(count);
      repeat(stage, block, row, rows, next);
      std::int64_t* const words = room_in(next.words[v], next.count + rows) + next.count;
      if (set) set->write(first, count, words);
      for (std::int64_t k = 0; k < count && is_boxed; ++k) words[k] = Formula::value_at(*box_, v + 1, part[first + k]);
      if (wants_positions_) {
        std::int64_t* const positions = room_in(next.positions[v], next.count + rows) + next.count;
        for (std::int64_t k = 0; k < count; ++k) positions[k] = part[first + k];
      }
      next.count += rows;
      first += count;
      if (next.count == Block::most_rows) {
        expand(clause + 1, next);
        next.count = 0;
      }
    }
  }
  if (next.count > 0) expand(clause + 1, next);
}

}  // namespace kplan
