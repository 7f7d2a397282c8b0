#include "engine/analysis/box_columns.hpp"

#include <algorithm>

#include "engine/analysis/expressions.hpp"

namespace kplan {
namespace {

/// Variables that the expression names.
void note_variables(const Expr& e, std::vector<bool>& named) {
  visit(e, [&](const Expr& x) {
    if (x.kind == ExprKind::variable) named[static_cast<std::size_t>(x.id)] = true;
  });
}

}  // namespace

BoxColumns::BoxColumns(const BoundPlan& bound, const Statement& s, const std::vector<TrackSource>& sources)
    : state_(bound.state), columns_(s, state_), tracks_(columns_, sources, bound), block_(s.variables.size()) {
  std::vector<bool> named(s.variables.size());
  for (const TrackSource& source : sources) {
    wants_positions_ = wants_positions_ || source.kind == TrackSource::Kind::position;
    if (source.kind == TrackSource::Kind::word) named[static_cast<std::size_t>(source.number)] = true;
    std::vector<const Expr*> elements = source.counted;
    if (source.element) elements.push_back(source.element);
    for (const Expr* e : elements) note_variables(*e, named);
  }
  for (std::size_t c = s.clauses.size(); c-- > 0;) {
    const Clause& clause = s.clauses[c];
    if (clause.kind == ClauseKind::filter) continue;
    const auto v = static_cast<std::size_t>(clause.variable);
    if (clause.kind == ClauseKind::generator) {
      generators_.push_back(v);
    } else if (named[v]) {
      is_served_ = is_served_ && is_integral(*clause.expression);
      note_variables(*clause.expression, named);
      if (is_served_) bindings_.push_back({v, columns_.program(*clause.expression, ColumnProgram::Form::integers)});
    }
  }
  std::ranges::reverse(bindings_);
}

bool BoxColumns::serves(const Box& box) const {
  constexpr std::int64_t fewest = 32;
  return is_served_ && box.positions[0].count == 1 && box.sets[0].is_known &&
         std::ranges::all_of(generators_, [&](std::size_t v) { return box.sets[v + 1].is_known; }) &&
         environment_count(box, fewest) == fewest;
}

/// So many environments, from that one of the box on.
void BoxColumns::fill(const Box& box, std::int64_t first, std::size_t count) {
  block_.count = count;
  for (const std::size_t v : generators_) {
    const Progression& p = box.positions[v + 1];
    std::int64_t inner = 1;  // environments in which it stays the same
    for (std::size_t n = v + 2; n < box.positions.size(); ++n) inner *= box.positions[n].count;
    std::int64_t index = first / inner % p.count, left = inner - first % inner;
    std::int64_t* const words = room_in(block_.words[v], count);
    std::int64_t* const positions = wants_positions_ ? room_in(block_.positions[v], count) : nullptr;
    for (std::size_t row = 0; row < count;) {
      const std::size_t end = row + static_cast<std::size_t>(std::min(left, static_cast<std::int64_t>(count - row)));
      std::fill(words + row, words + end, Formula::value_at(box, v + 1, p[index]));
      if (positions) std::fill(positions + row, positions + end, p[index]);
      row = end;
      left = inner;
      if (++index == p.count) index = 0;
    }
  }
}

/// The same of environments that are in order.
void BoxColumns::fill(const Box& box, const OrderedEnvironments& environments, std::size_t first, std::size_t count) {
  block_.count = count;
  std::uint64_t keys[Block::most_rows];
  std::copy_n(environments.keys.begin() + static_cast<std::ptrdiff_t>(first), count, keys);
  for (const std::size_t v : generators_) {
    const auto extent = static_cast<std::uint64_t>(environments.extents[v + 1]);
    std::int64_t* const words = room_in(block_.words[v], count);
    std::int64_t* const positions = wants_positions_ ? room_in(block_.positions[v], count) : nullptr;
    for (std::size_t row = 0; row < count; ++row) {
      const auto position = environments.lowest[v + 1] + static_cast<std::int64_t>(extent > 1 ? keys[row] % extent : 0);
      if (extent > 1) keys[row] /= extent;
      words[row] = Formula::value_at(box, v + 1, position);
      if (positions) positions[row] = position;
    }
  }
}

template <class F>
bool BoxColumns::list(std::int64_t rank, std::int64_t environments, std::vector<Piece>& pieces, const F& fill_from) {
  state_.rank = rank;
  if (!tracks_.begin()) return false;
  GrowingPiece grown;
  try {
    for (std::int64_t done = 0; done < environments; done += static_cast<std::int64_t>(block_.count)) {
      fill_from(done, std::min(Block::most_rows, static_cast<std::size_t>(environments - done)));
      for (Binding& b : bindings_) columns_.run(b.program, block_, room_in(block_.words[b.variable], block_.count));
      tracks_.take(block_);
      tracks_.append(0, block_.count, grown);
      if (grown.list_length > most_listed) return false;
    }
  } catch (const BlockFault&) {
    return false;
  }
  if (grown.list_length > 0) append(pieces, tracks_.piece(std::move(grown)));
  return true;
}

bool BoxColumns::list(const Box& box, std::vector<Piece>& pieces) {
  if (box.only) return list(std::vector{box}, pieces);
  return serves(box) && list(Formula::value_at(box, 0, box.positions[0].first), environment_count(box, most_listed),
                             pieces, [&](std::int64_t first, std::size_t count) { fill(box, first, count); });
}

bool BoxColumns::list(const std::vector<Box>& boxes, std::vector<Piece>& pieces) {
  if (!is_served_ || boxes.empty()) return false;
  const auto environments = in_order(boxes);
  return environments && list(Formula::value_at(boxes[0], 0, boxes[0].positions[0].first),
                              std::ssize(environments->keys), pieces, [&](std::int64_t first, std::size_t count) {
                                fill(boxes[0], *environments, static_cast<std::size_t>(first), count);
                              });
}

bool BoxColumns::lists_environments(std::int64_t rank) {
  state_.rank = rank;
  return is_served_ && tracks_.begin() && tracks_.lists_environments();
}

}  // namespace kplan
