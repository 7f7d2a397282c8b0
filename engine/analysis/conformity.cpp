#include "engine/analysis/conformity.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/analysis/affine_reference.hpp"
#include "engine/analysis/box_columns.hpp"
#include "engine/analysis/box_order.hpp"
#include "engine/analysis/expressions.hpp"

namespace kplan {

void conform(std::int64_t value, std::int64_t place, Span span) {
  if (value == place) return;
  throw EvaluationFault{"KP-P059",
                        fmt::format("a value of {} element{} does not conform to a place of {} element{}", value,
                                    value == 1 ? "" : "s", place, place == 1 ? "" : "s"),
                        span};
}

namespace {

/// All slices of a value are of one length (or of one element), and the place of the same. Throws EvaluationFault.
void conform_all(const Reduction& r, std::int64_t place, const std::vector<std::int64_t>& counts) {
  std::size_t value = 1;
  for (const std::int64_t count : counts) {
    if (count < 0) return;  // an error of its own, met where elements are selected
    value = common_count(value, static_cast<std::size_t>(count), r.value->span);
  }
  if (place >= 0) conform(static_cast<std::int64_t>(value), place, r.span);
}

/// Calls f(), whose fault is met in the environments of box().
template <class F, class BoxOf>
void met_in(const BoxOf& box, const F& f) {
  try {
    f();
  } catch (const EvaluationFault& fault) {
    throw SolverFault{fault, box()};
  }
}

}  // namespace

const std::vector<Layout>& Conformity::layouts_at(std::int64_t rank) {
  auto& layouts = layouts_[rank];
  if (layouts.empty())
    layouts = layouts_of(*bound_.model, bound_.world_rank_of(rank), bound_.world_size, bound_.state.parameters);
  return layouts;
}

void Conformity::check(const Reduction& r, const Expr& place, const Box& box, std::int64_t sender) {
  const auto elements = elements_read(*r.value);
  const PlanModel& plan = *bound_.model;
  if (!plan.is_slice(*r.place) && std::ranges::none_of(elements, [&](const Expr* e) { return plan.is_slice(*e); }))
    return;
  if (std::ranges::any_of(elements, [&](const Expr* e) { return has_private_count(plan, *e); })) return;
  std::vector<const Expr*> values;
  for (const Expr* e : elements) {
    kept_.push_back(with_rank(std::make_shared<const Expr>(*e), sender));
    values.push_back(kept_.back().get());
  }
  const Layout& place_layout = bound_.state.layouts[static_cast<std::size_t>(r.place->id)];
  const std::vector<Layout>& value_layouts = layouts_at(sender);
  const auto place_count = element_count_of(formula_, place_layout, place, box);
  std::vector<std::int64_t> counts;
  for (const Expr* e : values) {
    const auto count = element_count_of(formula_, value_layouts[static_cast<std::size_t>(e->id)], *e, box);
    if (count) counts.push_back(*count);
  }
  if (place_count && counts.size() == values.size())
    return met_in([&] { return box; }, [&] { conform_all(r, *place_count, counts); });
  pieces_.spend(box, most_listed);
  if (conform_in_columns(place, values, value_layouts, box)) return;
  // Environment by environment.
  each_environment(box, [&](const std::vector<std::int64_t>& indices) {
    const EvaluationContext context = pieces_.context_at(box, indices);
    const auto count_of = [&](const Layout& layout, const Expr& e) { return element_count_at(layout, e, context); };
    met_in([&] { return single(box, indices); },
           [&] {
             counts.clear();
             for (const Expr* e : values)
               counts.push_back(count_of(value_layouts[static_cast<std::size_t>(e->id)], *e));
             conform_all(r, count_of(place_layout, place), counts);
           });
    return true;
  });
}

/// Whether all environments of the box are found to be well. False also where that cannot be seen so.
bool Conformity::conform_in_columns(const Expr& place, const std::vector<const Expr*>& values,
                                    const std::vector<Layout>& value_layouts, const Box& box) const {
  std::vector<TrackSource> sources{{.kind = TrackSource::Kind::count, .counted = {&place}}};
  for (const Expr* e : values) {
    const auto buffer = static_cast<std::size_t>(e->id);
    if (value_layouts[buffer].shape != bound_.state.layouts[buffer].shape) return false;
    sources.push_back({.kind = TrackSource::Kind::count, .counted = {e}});
  }
  std::vector<Piece> counts;
  if (!BoxColumns(bound_, s_, sources).list(box, counts)) return false;
  return std::ranges::all_of(counts, [&](const Piece& piece) {
    for (std::int64_t o = 0; o < piece.list_length; ++o) {
      const std::int64_t wanted = piece.tracks[0].base(o);
      std::int64_t found = 1;
      for (std::size_t t = 1; t < piece.tracks.size(); ++t) {
        const std::int64_t count = piece.tracks[t].base(o);
        if (count != 1 && count != wanted) return false;
        if (count != 1) found = count;
      }
      if (found != wanted) return false;
    }
    return true;
  });
}

std::uint64_t Conformity::digest(const std::vector<Box>& boxes, const std::vector<TrackSource>& told) {
  for (const Box& box : boxes) pieces_.spend(box, most_listed);
  std::uint64_t environments = 0, out = 0;
  for (const Piece& piece : pieces_.pieces_of(boxes, told))
    each_entry(piece, [&](const std::vector<std::int64_t>& words) {
      for (const std::int64_t w : words) out = mixed(out, static_cast<std::uint64_t>(w));
      ++environments;
      return true;
    });
  return mixed(out, environments);
}

}  // namespace kplan
