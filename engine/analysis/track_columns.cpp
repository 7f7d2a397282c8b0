#include "engine/analysis/track_columns.hpp"

#include <algorithm>

namespace kplan {

bool is_slice(const Expr& e, const Layout& layout) {
  if (e.subscripts.empty()) return !layout.shape.empty();
  return std::ranges::any_of(e.subscripts, &Subscript::is_slice);
}

TrackColumns::TrackColumns(ColumnEvaluator& columns, const Block& block, const std::vector<TrackSource>& sources,
                           const std::vector<Layout>& layouts)
    : columns_(columns), block_(block), sources_(sources), layouts_(layouts), values_(sources.size()) {
  for (std::size_t t = 0; t < sources_.size(); ++t) {
    const TrackSource& source = sources_[t];
    if (source.kind == TrackSource::Kind::element &&
        is_slice(*source.element, layouts_[static_cast<std::size_t>(source.element->id)]))
      has_slices_ = true;
    else column_of(source, values_[t]);
  }
}

void TrackColumns::column_of(const TrackSource& source, std::vector<std::int64_t>& out) {
  const auto n = static_cast<std::size_t>(source.number);
  switch (source.kind) {
    case TrackSource::Kind::element: {
      columns_.select_elements(*source.element, block_, out);
      const auto bytes = static_cast<std::int64_t>(source.element->element_bytes),
                 offset = static_cast<std::int64_t>(source.element->field_offset_bytes);
      for (std::int64_t& at : out) at = at * bytes + offset;
      return;
    }
    case TrackSource::Kind::number:
      if (n == 0) out.assign(block_.count, columns_.rank());
      else out = block_.words[n - 1];
      return;
    case TrackSource::Kind::word: out = source.word == 0 ? block_.words[n] : block_.second[n]; return;
    case TrackSource::Kind::position: out = block_.positions[n - 1]; return;
    case TrackSource::Kind::count: {
      out.assign(block_.count, 1);
      for (const Expr* e : source.counted) {
        const Layout& layout = layouts_[static_cast<std::size_t>(e->id)];
        if (!is_slice(*e, layout)) continue;
        for (std::size_t row = 0; row < block_.count; ++row) {
          try {
            const std::int64_t count = element_count_at(layout, *e, columns_.context_at(block_, row));
            if (count != 1) out[row] = count;
          } catch (const EvaluationFault& f) {
            throw BlockFault{f, row};
          }
        }
      }
      return;
    }
  }
}

std::vector<std::int64_t> TrackColumns::track_at(std::size_t t, std::size_t row) {
  const TrackSource& source = sources_[t];
  if (!values_[t].empty()) return {values_[t][row]};
  std::vector<std::int64_t> out = select(*source.element, columns_.context_at(block_, row));
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
