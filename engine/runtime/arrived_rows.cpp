#include "engine/runtime/arrived_rows.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "engine/runtime/row_letters.hpp"

namespace kplan {
namespace {

/// Elements of so many bytes, one a row.
template <std::size_t bytes>
void write_single(std::byte* base, std::span<const std::int64_t> firsts, const std::byte* values) {
  for (std::size_t row = 0; row < firsts.size(); ++row) std::memcpy(base + firsts[row], values + bytes * row, bytes);
}

}  // namespace

[[gnu::hot]] void ArrivedRows::end_segment(std::size_t first_row, bool has_counts) {
  Segment segment{rows_ - first_row, rows_ - first_row, first_row};
  if (has_counts) {
    segment.elements = 0;
    for (std::size_t row = first_row; row < rows_; ++row) segment.elements += static_cast<std::size_t>(counts_[row]);
  }
  segments_.push_back(segment);
}

[[gnu::hot]] void ArrivedRows::add_segment(std::size_t rows, std::size_t elements) {
  segments_.push_back({rows, elements, rows_});
  room(rows);
  rows_ += rows;
}

[[gnu::hot]] const std::byte* ArrivedRows::last_values(std::span<const std::byte> letter, std::size_t value_bytes,
                                                       std::size_t& at) const {
  const Segment& segment = segments_.back();
  if (segment.elements == 0) return nullptr;
  at = aligned_in_letter(at);
  const std::size_t bytes = segment.elements * value_bytes;
  if (at > letter.size() || bytes > letter.size() - at) fail_damaged_letter();
  return letter.data() + std::exchange(at, at + bytes);
}

[[gnu::hot]] std::byte* ArrivedRows::copy_from(const std::byte* base, const Segment& segment, std::size_t value_bytes,
                                               std::byte* to) const {
  for (std::size_t row = segment.first_row; row < segment.first_row + segment.rows; ++row) {
    gather_row(to, base, firsts_[row], step_, count_of(row), value_bytes);
    to += count_of(row) * value_bytes;
  }
  return to;
}

[[gnu::hot]] void ArrivedRows::copy_to(std::byte* base, std::span<const std::byte* const> values,
                                       std::size_t value_bytes) const {
  const auto bytes = static_cast<std::int64_t>(value_bytes);
  for (std::size_t n = 0; n < segments_.size(); ++n) {
    if (!values[n]) continue;
    const Segment& segment = segments_[n];
    const std::span<const std::int64_t> firsts(firsts_.data() + segment.first_row, segment.rows);
    if (are_single_ && value_bytes == 8) {
      write_single<8>(base, firsts, values[n]);
    } else if (are_single_ && value_bytes == 4) {
      write_single<4>(base, firsts, values[n]);
    } else {
      const std::byte* from = values[n];
      for (std::size_t row = segment.first_row; row < segment.first_row + segment.rows; ++row) {
        const std::size_t count = count_of(row);
        if (count == 0) continue;  // it may begin anywhere
        if (step_ == bytes || count == 1) copy_row(base + firsts_[row], from, count * value_bytes);
        else copy_row(base + firsts_[row], step_, from, bytes, count, value_bytes);
        from += count * value_bytes;
      }
    }
  }
}

void ArrivedRows::add_places(std::byte* base, const Segment& segment, std::size_t value_bytes,
                             std::vector<std::span<std::byte>>& to) const {
  for (std::size_t row = segment.first_row; row < segment.first_row + segment.rows; ++row)
    to.emplace_back(base + firsts_[row], count_of(row) * value_bytes);
}

[[gnu::hot]] void ArrivedRows::list(const Segment& segment, std::vector<jit::ListEntry>& out) const {
  const auto first = firsts_.begin() + static_cast<std::ptrdiff_t>(segment.first_row);
  const auto last = first + static_cast<std::ptrdiff_t>(segment.rows);
  if (are_single_) {
    out.resize(segment.rows);
    std::transform(first, last, out.begin(), [](std::int64_t n) { return static_cast<jit::ListEntry>(n); });
    return;
  }
  out.clear();
  for (std::size_t row = segment.first_row; row < segment.first_row + segment.rows; ++row)
    for (std::int64_t k = 0; k < counts_[row]; ++k)
      out.push_back(static_cast<jit::ListEntry>(firsts_[row] + k * step_));
}

[[gnu::hot]] bool DistinctRows::are_distinct_elements(std::span<const std::int64_t> firsts, std::int64_t bytes) {
  bool is_ascending = true;
  std::int64_t lowest = INT64_MAX, highest = INT64_MIN;
  for (const std::int64_t first : firsts) {
    is_ascending &= first > highest;
    lowest = std::min(lowest, first);
    highest = std::max(highest, first);
  }
  if (is_ascending) return true;
  // Any two lie a whole number of elements apart.
  const auto unit = static_cast<std::uint64_t>(bytes);
  const int shift = std::has_single_bit(unit) ? std::countr_zero(unit) : -1;
  const auto number = [&](std::int64_t first) {
    const auto distance = static_cast<std::uint64_t>(first - lowest);
    return shift >= 0 ? distance >> shift : distance / unit;
  };
  marks_.assign(number(highest) / 64 + 1, 0);
  for (const std::int64_t first : firsts) {
    const std::uint64_t k = number(first), bit = std::uint64_t{1} << (k % 64);
    if ((marks_[k / 64] & bit) != 0) return false;
    marks_[k / 64] |= bit;
  }
  return true;
}

/// Whether each row has a line of its own along the dimension.
bool DistinctRows::are_on_distinct_lines(std::span<const std::int64_t> firsts, const std::int64_t* counts,
                                         const RowSteps& steps) {
  std::int64_t* const lines = room_in(lines_, firsts.size());
  std::size_t count = 0;
  for (std::size_t row = 0; row < firsts.size(); ++row)
    if (counts[row] > 0) lines[count++] = firsts[row] - firsts[row] / steps.step % steps.extent * steps.step;
  return are_distinct_elements({lines, count}, steps.unit);
}

[[gnu::hot]] bool DistinctRows::are_distinct(std::span<const std::int64_t> firsts, const std::int64_t* counts,
                                             const RowSteps& steps) {
  if (!counts) return are_distinct_elements(firsts, steps.unit);
  if (steps.step == steps.unit) return are_distinct_runs(firsts, counts, steps.unit);
  if (are_on_distinct_lines(firsts, counts, steps)) return true;
  Column elements;
  for (std::size_t row = 0; row < firsts.size(); ++row)
    for (std::int64_t k = 0; k < counts[row]; ++k) elements.push_back(firsts[row] + k * steps.step);
  return are_distinct_elements(elements, steps.unit);
}

[[gnu::hot]] bool DistinctRows::are_distinct_runs(std::span<const std::int64_t> firsts, const std::int64_t* counts,
                                                  std::int64_t bytes) {
  const auto end_of = [&](std::size_t row) { return firsts[row] + counts[row] * bytes; };
  bool is_ascending = true;
  std::int64_t lowest = INT64_MAX, end = INT64_MIN;
  for (std::size_t row = 0; row < firsts.size(); ++row) {
    if (counts[row] == 0) continue;
    is_ascending = is_ascending && firsts[row] >= end;
    lowest = std::min(lowest, firsts[row]);
    end = std::max(end, end_of(row));
  }
  if (is_ascending) return true;
  marks_.assign(static_cast<std::size_t>((end - lowest) / bytes + 63) / 64, 0);
  for (std::size_t row = 0; row < firsts.size(); ++row) {
    const std::int64_t first = (firsts[row] - lowest) / bytes, last = (end_of(row) - lowest) / bytes;
    for (std::int64_t k = first; k < last; ++k) {
      std::uint64_t& mark = marks_[static_cast<std::size_t>(k) / 64];
      const std::uint64_t bit = std::uint64_t{1} << (k % 64);
      if ((mark & bit) != 0) return false;
      mark |= bit;
    }
  }
  return true;
}

}  // namespace kplan
