#include "engine/analysis/pieces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "engine/analysis/box_columns.hpp"
#include "engine/analysis/box_order.hpp"
#include "engine/analysis/columns.hpp"

namespace kplan {

Box single(const Box& box, const std::vector<std::int64_t>& indices) {
  Box out{box.positions, box.sets};
  for (std::size_t n = 0; n < out.positions.size(); ++n) out.positions[n] = {box.positions[n][indices[n]], 1, 1};
  return out;
}

void append_listed(std::vector<Piece>& pieces, const std::vector<std::vector<std::int64_t>>& bases, std::size_t count) {
  if (count == 0) return;
  Piece piece;
  piece.list_length = static_cast<std::int64_t>(count);
  for (const auto& list : bases) piece.tracks.push_back({{list.begin(), list.end()}, {}});
  append(pieces, std::move(piece));
}

std::size_t common_count(std::size_t count, std::size_t other, Span span) {
  if (other == 1) return count;
  if (count != 1 && count != other)
    throw EvaluationFault{"KP-P058", fmt::format("slices of {} and of {} elements stand in one value", count, other),
                          span};
  return other;
}

std::vector<Piece> PieceMaker::pieces_of(std::vector<Box> boxes, const std::vector<TrackSource>& sources) {
  if (!are_in_order(boxes)) boxes = joined(std::move(boxes));
  const bool are_ordered = are_in_order(boxes);
  std::vector<Piece> out;
  if (!listed_together(boxes, are_ordered, sources, out)) {
    if (are_ordered) listed_in_turn(boxes, sources, out);
    else listed_in_order(boxes, sources, out);
  }
  for (Piece& p : out) simplify(p);
  return out;
}

std::optional<AffineReference> PieceMaker::affine_track(const TrackSource& source, const Box& box) const {
  AffineReference out;
  out.strides.assign(box.positions.size(), 0);
  const auto n = static_cast<std::size_t>(source.number);
  switch (source.kind) {
    case TrackSource::Kind::element:
      return affine_element(formula_, bound_.state.layouts[static_cast<std::size_t>(source.element->id)],
                            *source.element, box);
    case TrackSource::Kind::number: return affine_number(source.number, box);
    case TrackSource::Kind::position:
      out.base = box.positions[n].first;
      if (box.positions[n].count > 1) out.strides[n] = box.positions[n].step;
      return out;
    case TrackSource::Kind::word: {
      const Expr* binding = formula_.binding_of(source.number);
      if (!binding) return affine_number(source.number + 1, box);
      const auto form = formula_.affine(*binding, box);
      if (!form) return std::nullopt;
      out.base = form->constant;
      for (std::size_t k = 0; k < form->coefficients.size(); ++k)
        if (box.positions[k].count > 1) out.strides[k] = form->coefficients[k];
      return out;
    }
    case TrackSource::Kind::count: {
      out.base = 1;
      for (const Expr* e : source.counted) {
        const auto count = element_count_of(formula_, bound_.state.layouts[static_cast<std::size_t>(e->id)], *e, box);
        if (!count) return std::nullopt;
        if (*count != 1) out.base = *count;
      }
      return out;
    }
  }
  return std::nullopt;
}

std::optional<Piece> PieceMaker::affine_piece(const Box& box, const std::vector<TrackSource>& sources) {
  if (box.only) return std::nullopt;
  std::vector<AffineReference> references;
  for (const TrackSource& source : sources) {
    auto reference = affine_track(source, box);
    if (!reference) return std::nullopt;
    references.push_back(std::move(*reference));
  }
  Piece out;
  Wide environments = 1;
  for (const Progression& p : box.positions)
    environments = std::min<Wide>(environments * p.count, most_message_elements + 1);
  if (environments > most_message_elements)
    throw SolverFault{{"KP-A011", "one message would have more than 2^40 elements",
                       s_.text.text.empty() ? Span{} : s_.reductions[0].span},
                      box};
  const auto slices = refine_slices(references);
  if (!slices) return std::nullopt;
  for (const Progression& p : box.positions) out.counts.push_back(p.count);
  for (const std::int64_t c : *slices) out.counts.push_back(c);
  for (const AffineReference& r : references) {
    Track track{{r.base}, r.strides};
    for (const SliceDimension& d : r.slices) track.strides.push_back(d.stride);
    out.tracks.push_back(std::move(track));
  }
  return out;
}

EvaluationContext PieceMaker::context_at(const Box& box, const std::vector<std::int64_t>& indices) {
  if (variables_.size() != s_.variables.size() || state_.layouts.empty()) {
    state_ = bound_.state;
    variables_.assign(s_.variables.size(), {});
  }
  formula_.values_at(box, indices, state_, variables_);
  return {.state = &state_, .variables = variables_.data()};
}

std::vector<std::int64_t> PieceMaker::track_at(const TrackSource& source, const Box& box,
                                               const std::vector<std::int64_t>& indices,
                                               const EvaluationContext& context) const {
  const auto n = static_cast<std::size_t>(source.number);
  switch (source.kind) {
    case TrackSource::Kind::element: return select_bytes(*source.element, context);
    case TrackSource::Kind::number: return {Formula::value_at(box, n, box.positions[n][indices[n]])};
    case TrackSource::Kind::position: return {box.positions[n][indices[n]]};
    case TrackSource::Kind::word: {
      const Expr* binding = formula_.binding_of(source.number);
      return {word_of(binding ? evaluate(*binding, context) : context.variables[n], source.word)};
    }
    case TrackSource::Kind::count: return {element_count_at(source.counted, context)};
  }
  return {};
}

PieceMaker::Bases PieceMaker::bases_at(const Box& box, const std::vector<std::int64_t>& indices,
                                       const std::vector<TrackSource>& sources) {
  const EvaluationContext context = context_at(box, indices);
  Bases out;
  std::size_t count = 1;
  for (const TrackSource& source : sources) {
    try {
      out.push_back(track_at(source, box, indices, context));
      count = common_count(count, out.back().size(), source.element ? source.element->span : Span{});
    } catch (const EvaluationFault& f) {
      throw SolverFault{f, single(box, indices)};
    }
  }
  for (auto& bases : out)
    if (bases.size() == 1) bases.assign(count, bases[0]);
  if (count > 1) spend(static_cast<Wide>(count), most_listed, single(box, indices));
  return out;
}

void PieceMaker::spend(Wide count, std::int64_t most, const Box& box) {
  if (count + listed_ > most)
    throw SolverFault{{"KP-A011",
                       fmt::format("more than {} environments and elements have to be looked at one by one, for want "
                                   "of a closed form; simpler subscripts, or generators in another order, may have one",
                                   most),
                       s_.reductions[0].span},
                      box};
  listed_ += static_cast<std::int64_t>(count);
}

void PieceMaker::spend(const Box& box, std::int64_t most) {
  spend(environment_count(box, most_message_elements), most, box);
}

/// Box by box, in closed form where there is one.
void PieceMaker::listed_in_turn(const std::vector<Box>& boxes, const std::vector<TrackSource>& sources,
                                std::vector<Piece>& out) {
  std::optional<BoxColumns> columns;
  for (const Box& box : boxes) {
    if (auto piece = affine_piece(box, sources)) {
      append(out, std::move(*piece));
      continue;
    }
    if (!columns) columns.emplace(bound_, s_, sources);
    spend(box, most_listed);
    if (columns->list(box, out)) continue;
    each_environment(box, [&](const std::vector<std::int64_t>& indices) {
      const Bases bases = bases_at(box, indices, sources);
      append_listed(out, bases, bases.empty() ? 1 : bases[0].size());
      return true;
    });
  }
}

/// All boxes at once, where they are not in order, or so small that a look at each takes longer. False, and nothing is
/// done, where that cannot be.
bool PieceMaker::listed_together(const std::vector<Box>& boxes, bool are_ordered,
                                 const std::vector<TrackSource>& sources, std::vector<Piece>& out) {
  constexpr std::size_t fewest_boxes = 32;
  constexpr std::int64_t most_environments = 16;  // of a box
  if (are_ordered && boxes.size() < fewest_boxes) return false;
  Wide environments = 0;
  for (const Box& box : boxes) environments += environment_count(box, most_listed);
  if (are_ordered && environments > most_environments * std::ssize(boxes)) return false;
  BoxColumns columns(bound_, s_, sources);
  if (are_ordered && !columns.lists_environments(boxes[0].positions[0].first)) return false;
  if (environments > most_merged || environments + listed_ > most_listed || !columns.list(boxes, out)) return false;
  spend(environments, most_listed, boxes[0]);
  return true;
}

/// Environment by environment, brought into order.
void PieceMaker::listed_in_order(const std::vector<Box>& boxes, const std::vector<TrackSource>& sources,
                                 std::vector<Piece>& out) {
  std::map<std::vector<std::int64_t>, Bases> in_order;
  for (const Box& box : boxes) {
    spend(box, most_sorted);
    each_environment(box, [&](const std::vector<std::int64_t>& indices) {
      std::vector<std::int64_t> key;
      for (std::size_t n = 0; n < indices.size(); ++n) key.push_back(box.positions[n][indices[n]]);
      in_order[std::move(key)] = bases_at(box, indices, sources);
      return true;
    });
  }
  for (const auto& [key, bases] : in_order) append_listed(out, bases, bases.empty() ? 1 : bases[0].size());
}

}  // namespace kplan
