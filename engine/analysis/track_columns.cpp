#include "engine/analysis/track_columns.hpp"

#include <algorithm>

namespace kplan {

bool is_slice(const Expr& e, const Layout& layout) {
  if (e.subscripts.empty()) return !layout.shape.empty();
  return std::ranges::any_of(e.subscripts, &Subscript::is_slice);
}

TrackColumns::TrackColumns(ColumnEvaluator& columns, const std::vector<TrackSource>& sources,
                           const std::vector<Layout>& layouts)
    : columns_(columns), sources_(sources), layouts_(layouts), programs_(sources.size()), values_(sources.size()) {
  for (std::size_t t = 0; t < sources_.size(); ++t) {
    if (sources_[t].kind != TrackSource::Kind::element) continue;
    if (is_several(sources_[t])) has_slices_ = true;
    else programs_[t] = columns_.program(*sources_[t].element, ColumnProgram::Form::elements);
  }
}

bool TrackColumns::is_several(const TrackSource& source) const {
  return source.kind == TrackSource::Kind::element &&
         is_slice(*source.element, layouts_[static_cast<std::size_t>(source.element->id)]);
}

void TrackColumns::take(const Block& block) {
  block_ = &block;
  for (std::size_t t = 0; t < sources_.size(); ++t)
    if (!is_several(sources_[t])) column_of(t, room_in(values_[t], block.count));
}

void TrackColumns::column_of(std::size_t t, std::int64_t* out) {
  const TrackSource& source = sources_[t];
  const auto n = static_cast<std::size_t>(source.number);
  const std::size_t count = block_->count;
  const auto copy = [&](const Column& from) { std::copy_n(from.begin(), count, out); };
  switch (source.kind) {
    case TrackSource::Kind::element: {
      columns_.run(*programs_[t], *block_, out);
      const auto bytes = static_cast<std::int64_t>(source.element->element_bytes),
                 offset = static_cast<std::int64_t>(source.element->field_offset_bytes);
      for (std::size_t row = 0; row < count; ++row) out[row] = out[row] * bytes + offset;
      return;
    }
    case TrackSource::Kind::number:
      if (n == 0) std::fill_n(out, count, columns_.rank());
      else copy(block_->words[n - 1]);
      return;
    case TrackSource::Kind::word: return copy(source.word == 0 ? block_->words[n] : block_->second[n]);
    case TrackSource::Kind::position: return copy(block_->positions[n - 1]);
    case TrackSource::Kind::count: break;
  }
  std::fill_n(out, count, 1);
  for (const Expr* e : source.counted) {
    const Layout& layout = layouts_[static_cast<std::size_t>(e->id)];
    if (!is_slice(*e, layout)) continue;
    for (std::size_t row = 0; row < count; ++row) {
      try {
        const std::int64_t elements = element_count_at(layout, *e, columns_.context_at(*block_, row));
        if (elements != 1) out[row] = elements;
      } catch (const EvaluationFault& f) {
        throw BlockFault{f, row};
      }
    }
  }
}

std::vector<std::int64_t> TrackColumns::track_at(std::size_t t, std::size_t row) {
  const TrackSource& source = sources_[t];
  if (!values_[t].empty()) return {values_[t][row]};
  std::vector<std::int64_t> out = select(*source.element, columns_.context_at(*block_, row));
  for (std::int64_t& at : out)
    at = at * static_cast<std::int64_t>(source.element->element_bytes) +
         static_cast<std::int64_t>(source.element->field_offset_bytes);
  return out;
}

std::int64_t TrackColumns::append(std::size_t first, std::size_t end, std::vector<GrowingTrack>& tracks) {
  std::int64_t out = 0;
  if (has_slices_) {
    for (std::size_t row = first; row < end; ++row) out += append_one(row, tracks);
    return out;
  }
  for (std::size_t t = 0; t < sources_.size(); ++t) tracks[t].append(std::span(values_[t]).subspan(first, end - first));
  return static_cast<std::int64_t>(end - first);
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

}  // namespace kplan
