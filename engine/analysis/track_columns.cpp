// How it works: what environments have one of is a column. Slices are the same in all of them, then the piece gets
// dimensions, or runs, whose elements are listed; else every environment is looked at by itself.
#include "engine/analysis/track_columns.hpp"

#include <algorithm>

#include "engine/analysis/expressions.hpp"

namespace kplan {
namespace {

bool names_variable(const ExprPtr& e) {
  return e && contains(*e, [](const Expr& x) { return x.kind == ExprKind::variable; });
}

/// Whether a slice is the same in all environments.
bool is_same(const Expr& e) {
  return std::ranges::none_of(e.subscripts, [](const Subscript& s) {
    return s.is_slice && (names_variable(s.lo) || names_variable(s.hi) || names_variable(s.step));
  });
}

ExprPtr zero() {
  auto out = std::make_shared<Expr>();
  out->value = ScalarValue::integer(0);
  out->is_index = true;
  return out;
}

/// The reference to a slice's first element.
ExprPtr first_of(const Expr& e, std::size_t dimensions) {
  auto out = std::make_shared<Expr>(e);
  out->subscripts.resize(dimensions, {nullptr, nullptr, nullptr, true});
  for (Subscript& s : out->subscripts)
    if (s.is_slice) s = {s.lo ? s.lo : zero(), nullptr, nullptr, false};
  return out;
}

/// The slice where all indices are 0.
Expr slices_of(const Expr& e) {
  Expr out = e;
  for (Subscript& s : out.subscripts)
    if (!s.is_slice) s.lo = zero();
  return out;
}

}  // namespace

TrackColumns::TrackColumns(ColumnEvaluator& columns, const std::vector<TrackSource>& sources, const BoundPlan& bound)
    : columns_(columns),
      sources_(sources),
      layouts_(bound.state.layouts),
      references_(sources.size()),
      values_(sources.size()) {
  for (std::size_t t = 0; t < sources_.size(); ++t) {
    const auto add = [&](const Expr& e) { references_[t].push_back({&e, bound.model->is_slice(e)}); };
    if (sources_[t].element) add(*sources_[t].element);
    for (const Expr* e : sources_[t].counted) add(*e);
    has_slices_ = has_slices_ || (sources_[t].element && references_[t][0].is_slice);
  }
  form_ = form_of(*bound.model);
  for (std::size_t t = 0; t < sources_.size(); ++t)
    for (Reference& r : references_[t])
      if (sources_[t].element || (r.is_slice && form_ == Form::runs)) prepare(r);
}

TrackColumns::Form TrackColumns::form_of(const PlanModel& plan) const {
  const auto all = [&](const auto& is_so) {
    return std::ranges::all_of(references_, [&](const auto& references) {
      return std::ranges::all_of(references, [&](const Reference& r) { return !r.is_slice || is_so(*r.expression); });
    });
  };
  if (all(is_same)) return Form::same;
  return all([&](const Expr& e) { return names_runs(plan, e); }) ? Form::runs : Form::any;
}

void TrackColumns::prepare(Reference& r) const {
  using Program = ColumnProgram::Form;
  if (!r.is_slice) {
    r.program = columns_.program(*r.expression, Program::elements);
  } else if (form_ == Form::runs) {
    r.program = columns_.program(*r.expression, Program::runs);
  } else if (form_ == Form::same) {
    r.first = first_of(*r.expression, layouts_[static_cast<std::size_t>(r.expression->id)].shape.size());
    r.program = columns_.program(*r.first, Program::elements);
  }
}

bool TrackColumns::begin() {
  if (form_ == Form::same && !find_dimensions()) form_ = Form::any;
  return form_ != Form::any;
}

/// Of a slice that is the same in all environments. Throws EvaluationFault.
std::vector<SliceDimension> TrackColumns::dimensions_of(const Expr& e) const {
  const Layout& layout = layouts_[static_cast<std::size_t>(e.id)];
  const std::vector<SubscriptRange> ranges = subscript_ranges(slices_of(e), columns_.context());
  std::vector<SliceDimension> out;
  for (std::size_t d = 0; d < ranges.size(); ++d) {
    if (!e.subscripts.empty() && !e.subscripts[d].is_slice) continue;
    const std::int64_t stride = ranges[d].step * layout.strides[d] * static_cast<std::int64_t>(e.element_bytes);
    out.push_back({ranges[d].count, ranges[d].count > 1 ? stride : 0});
  }
  return out;
}

/// False where slices are faulty, empty, or do not fit into each other: environments will tell.
bool TrackColumns::find_dimensions() {
  dimensions_.assign(sources_.size(), {});
  try {
    for (std::size_t t = 0; t < sources_.size(); ++t)
      for (Reference& r : references_[t]) {
        if (!r.is_slice) continue;
        std::vector<SliceDimension> dimensions = dimensions_of(*r.expression);
        r.count = 1;
        for (const SliceDimension& d : dimensions)
          if (__builtin_mul_overflow(r.count, d.count, &r.count) || r.count == 0) return false;
        if (sources_[t].element) dimensions_[t].slices = std::move(dimensions);
      }
  } catch (const EvaluationFault&) {
    return false;
  }
  const auto counts = refine_slices(dimensions_);
  if (counts) counts_ = *counts;
  return counts.has_value();
}

void TrackColumns::run(Reference& r) {
  if (!r.program || (r.is_slice && form_ == Form::any)) return;
  std::int64_t* const counts = r.is_slice && form_ == Form::runs ? room_in(r.counts, block_->count) : nullptr;
  columns_.run(*r.program, *block_, room_in(r.firsts, block_->count), counts);
}

void TrackColumns::take(const Block& block) {
  block_ = &block;
  for (std::size_t t = 0; t < sources_.size(); ++t) {
    for (Reference& r : references_[t]) run(r);
    fill(t, room_in(values_[t], block.count));
  }
}

void TrackColumns::fill(std::size_t t, std::int64_t* out) {
  const TrackSource& source = sources_[t];
  const auto n = static_cast<std::size_t>(source.number);
  const std::size_t count = block_->count;
  const auto copy = [&](const Column& from) { std::copy_n(from.begin(), count, out); };
  switch (source.kind) {
    case TrackSource::Kind::element: {
      const Reference& r = references_[t][0];
      if (r.is_slice && form_ == Form::any) return;
      const auto bytes = static_cast<std::int64_t>(source.element->element_bytes),
                 offset = static_cast<std::int64_t>(source.element->field_offset_bytes);
      for (std::size_t row = 0; row < count; ++row) out[row] = r.firsts[row] * bytes + offset;
      return;
    }
    case TrackSource::Kind::number:
      if (n == 0) std::fill_n(out, count, columns_.rank());
      else copy(block_->words[n - 1]);
      return;
    case TrackSource::Kind::word: return copy(source.word == 0 ? block_->words[n] : block_->second[n]);
    case TrackSource::Kind::position: return copy(block_->positions[n - 1]);
    case TrackSource::Kind::count:
      std::fill_n(out, count, 1);
      for (const Reference& r : references_[t])
        if (r.is_slice) fill_counts(r, out);
      return;
  }
}

/// Where a slice has one element, others say how many there are.
void TrackColumns::fill_counts(const Reference& r, std::int64_t* out) {
  const Layout& layout = layouts_[static_cast<std::size_t>(r.expression->id)];
  for (std::size_t row = 0; row < block_->count; ++row) {
    std::int64_t count = form_ == Form::same ? r.count : 0;
    if (form_ == Form::runs) count = r.counts[row];
    try {
      if (form_ == Form::any) count = element_count_at(layout, *r.expression, columns_.context_at(*block_, row));
    } catch (const EvaluationFault& f) {
      throw BlockFault{f, row};
    }
    if (count != 1) out[row] = count;
  }
}

void TrackColumns::append(std::size_t first, std::size_t end, GrowingPiece& to) {
  to.tracks.resize(sources_.size());
  if (!has_slices_ || form_ == Form::same) {
    for (std::size_t t = 0; t < sources_.size(); ++t)
      to.tracks[t].append(std::span(values_[t]).subspan(first, end - first));
    to.list_length += static_cast<std::int64_t>(end - first);
  } else if (form_ == Form::runs) {
    to.list_length += append_runs(first, end, to.tracks);
  } else {
    for (std::size_t row = first; row < end; ++row) to.list_length += append_one(row, to.tracks);
  }
}

/// Appends every element of every run, and returns how many there are.
std::int64_t TrackColumns::append_runs(std::size_t first, std::size_t end, std::vector<GrowingTrack>& tracks) {
  constexpr std::int64_t most_at_once = Block::most_rows;
  std::int64_t* const lengths = room_in(lengths_, block_->count);
  std::int64_t* const run = room_in(run_, most_at_once);
  std::int64_t out = 0;
  for (std::size_t row = first; row < end; ++row) {
    std::size_t length = 1;
    for (std::size_t t = 0; t < sources_.size(); ++t) {
      if (!sources_[t].element || !references_[t][0].is_slice) continue;
      try {
        length =
            common_count(length, static_cast<std::size_t>(references_[t][0].counts[row]), sources_[t].element->span);
      } catch (const EvaluationFault& f) {
        throw BlockFault{f, row};
      }
    }
    lengths[row] = static_cast<std::int64_t>(length);
    out += lengths[row];
  }
  for (std::size_t t = 0; t < sources_.size(); ++t) {
    const bool is_slice = sources_[t].element && references_[t][0].is_slice;
    std::int64_t listed = 0;
    const auto flush = [&] {
      tracks[t].append(std::span(run, static_cast<std::size_t>(listed)));
      listed = 0;
    };
    for (std::size_t row = first; row < end; ++row) {
      const bool has_several = is_slice && references_[t][0].counts[row] != 1;
      const std::int64_t step = has_several ? static_cast<std::int64_t>(sources_[t].element->element_bytes) : 0;
      for (std::int64_t k = 0; k < lengths[row];) {
        const std::int64_t more = std::min(lengths[row] - k, most_at_once - listed);
        for (std::int64_t j = 0; j < more; ++j) run[listed + j] = values_[t][row] + (k + j) * step;
        k += more;
        listed += more;
        if (listed == most_at_once) flush();
      }
    }
    flush();
  }
  return out;
}

std::vector<std::int64_t> TrackColumns::track_at(std::size_t t, std::size_t row) {
  const TrackSource& source = sources_[t];
  if (!source.element || !references_[t][0].is_slice) return {values_[t][row]};
  return select_bytes(*source.element, columns_.context_at(*block_, row));
}

std::int64_t TrackColumns::append_one(std::size_t row, std::vector<GrowingTrack>& tracks) {
  try {
    std::vector<std::vector<std::int64_t>> lists;
    std::size_t count = 1;
    for (std::size_t t = 0; t < sources_.size(); ++t) {
      lists.push_back(track_at(t, row));
      count = common_count(count, lists.back().size(), sources_[t].element ? sources_[t].element->span : Span{});
    }
    for (std::size_t t = 0; t < sources_.size(); ++t) {
      if (lists[t].size() == 1) lists[t].resize(count, lists[t][0]);
      tracks[t].append(lists[t]);
    }
    return static_cast<std::int64_t>(count);
  } catch (const EvaluationFault& f) {
    throw BlockFault{f, row};
  }
}

Piece TrackColumns::piece(GrowingPiece grown) const {
  Piece out;
  out.list_length = grown.list_length;
  for (GrowingTrack& track : grown.tracks) out.tracks.push_back(std::move(track).take());
  if (form_ != Form::same) return out;
  out.counts = counts_;
  for (std::size_t t = 0; t < out.tracks.size(); ++t)
    for (const SliceDimension& d : dimensions_[t].slices) out.tracks[t].strides.push_back(d.stride);
  return out;
}

}  // namespace kplan
