#pragma once
// Rows that have come, letter after letter: where their elements lie here. Their values are those of one reduction, or
// of several whose elements lie alike.

#include <cstddef>
#include <span>
#include <vector>

#include "engine/analysis/column_program.hpp"
#include "jit/kernel_spec.hpp"

namespace kplan {

class ArrivedRows {
 public:
  /// Those of one letter.
  struct Segment {
    std::size_t rows = 0, elements = 0;
    std::size_t first_row = 0;
  };

  ArrivedRows() = default;
  /// `are_single`: rows of one element each.
  explicit ArrivedRows(bool are_single) : are_single_(are_single) {}

  std::size_t rows() const { return rows_; }
  const std::vector<Segment>& segments() const { return segments_; }

  /// `step`: from one element of the next rows to the next one, as firsts are counted.
  void clear(std::int64_t step) { segments_.clear(), rows_ = 0, step_ = step; }
  /// Where so many rows more are to be described: `firsts` bytes in the buffer, or the integer; numbers of elements, or
  /// null where rows are single.
  struct Room {
    std::int64_t *firsts, *counts;
  };
  Room room(std::size_t rows) {
    return {room_in(firsts_, rows_ + rows) + rows_, are_single_ ? nullptr : room_in(counts_, rows_ + rows) + rows_};
  }
  /// So many of them are there now.
  void add(std::size_t rows) { rows_ += rows; }
  /// They, from `first_row` on, are one letter's; `has_counts`: rows may have other than one element.
  void end_segment(std::size_t first_row, bool has_counts);
  /// So many rows and elements are one letter's, to be described in all_rows().
  void add_segment(std::size_t rows, std::size_t elements);
  Room all_rows() { return {firsts_.data(), are_single_ ? nullptr : counts_.data()}; }
  /// The values of the last segment, of so many bytes each, lie behind byte `at` of its letter, which is moved on. Null
  /// where there are none. Throws TransportError (KP-T012) where the letter is too short.
  const std::byte* last_values(std::span<const std::byte> letter, std::size_t value_bytes, std::size_t& at) const;

  /// Copies the elements of a segment's rows one behind the other; returns the end. `base` null: integers.
  std::byte* copy_from(const std::byte* base, const Segment& segment, std::size_t value_bytes, std::byte* to) const;
  /// Copies values to where the rows are: by segment, null where there are none.
  void copy_to(std::byte* base, std::span<const std::byte* const> values, std::size_t value_bytes) const;
  /// Adds where the rows of a segment are, whose elements follow each other.
  void add_places(std::byte* base, const Segment& segment, std::size_t value_bytes,
                  std::vector<std::span<std::byte>>& to) const;
  /// The elements of a segment's rows, where firsts are numbers of elements.
  void list(const Segment& segment, std::vector<jit::ListEntry>& out) const;

  std::span<const std::int64_t> firsts() const { return std::span(firsts_).first(rows_); }
  /// Null where rows are single.
  const std::int64_t* counts() const { return are_single_ ? nullptr : counts_.data(); }

 private:
  std::size_t count_of(std::size_t row) const { return are_single_ ? 1 : static_cast<std::size_t>(counts_[row]); }

  bool are_single_ = true;
  std::int64_t step_ = 0;
  std::vector<Segment> segments_;
  std::size_t rows_ = 0;
  Column firsts_, counts_;
};

/// Where the elements of rows lie in their buffer, as their firsts are counted: in units of an element, those of a row
/// one step apart, along a dimension of so many.
struct RowSteps {
  std::int64_t unit = 1, step = 1, extent = 1;
};

/// Finds out whether rows have an element in common.
class DistinctRows {
 public:
  /// False where one is met twice. `counts`: of elements; null: one each.
  bool are_distinct(std::span<const std::int64_t> firsts, const std::int64_t* counts, const RowSteps& steps);

 private:
  bool are_distinct_elements(std::span<const std::int64_t> firsts, std::int64_t bytes);
  bool are_distinct_runs(std::span<const std::int64_t> firsts, const std::int64_t* counts, std::int64_t bytes);
  bool are_on_distinct_lines(std::span<const std::int64_t> firsts, const std::int64_t* counts, const RowSteps& steps);

  std::vector<std::uint64_t> marks_;
  Column lines_;
};

}  // namespace kplan
