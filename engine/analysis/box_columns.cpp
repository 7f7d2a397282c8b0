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

/// As many as there are, or `most`.
std::int64_t environment_count(const Box& box, std::int64_t most) {
  Wide out = 1;
  for (const Progression& p : box.positions) out = std::min<Wide>(out * p.count, most);
  return static_cast<std::int64_t>(out);
}

}  // namespace

BoxColumns::BoxColumns(const BoundPlan& bound, const Statement& s, const std::vector<TrackSource>& sources)
    : state_(bound.state), columns_(s, state_), tracks_(columns_, sources, state_.layouts), block_(s.variables.size()) {
  std::vector<bool> named(s.variables.size());
  for (const TrackSource& source : sources) {
    wants_positions_ = wants_positions_ || source.kind == TrackSource::Kind::position;
    if (source.kind == TrackSource::Kind::word) named[static_cast<std::size_t>(source.number)] = true;
    std::vector<const Expr*> elements = source.counted;
    if (source.element) elements.push_back(source.element);
    for (const Expr* e : elements) {
      is_served_ = is_served_ && !is_slice(*e, state_.layouts[static_cast<std::size_t>(e->id)]);
      note_variables(*e, named);
    }
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
  for (Binding& b : bindings_) columns_.run(b.program, block_, room_in(block_.words[b.variable], count));
}

bool BoxColumns::list(const Box& box, std::vector<Piece>& pieces) {
  if (!serves(box)) return false;
  state_.rank = Formula::value_at(box, 0, box.positions[0].first);
  std::vector<GrowingTrack> tracks(tracks_.size());
  Piece piece;
  piece.list_length = environment_count(box, most_listed);
  try {
    for (std::int64_t done = 0; done < piece.list_length; done += static_cast<std::int64_t>(block_.count)) {
      fill(box, done, std::min(Block::most_rows, static_cast<std::size_t>(piece.list_length - done)));
      tracks_.take(block_);
      tracks_.append(0, block_.count, tracks);
    }
  } catch (const BlockFault&) {
    return false;
  }
  for (GrowingTrack& track : tracks) piece.tracks.push_back(std::move(track).take());
  append(pieces, std::move(piece));
  return true;
}

}  // namespace kplan
