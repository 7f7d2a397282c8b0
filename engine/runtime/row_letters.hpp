#pragma once
// Letters of rows. A letter is a head, for each reduction the number of its rows and their words column by column (the
// variables that the place uses, then the number of elements where it can be other than one), as 32-bit words where
// they fit, and then, of a push, the values, as the general way has them. Reductions of the same rows share their
// words.

#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "engine/analysis/column_program.hpp"
#include "engine/runtime/letter_head.hpp"
#include "jit/long_copy.hpp"

namespace kplan {

/// What a reduction's rows are like.
struct RowForm {
  std::size_t table = 0;        ///< the reduction whose rows and words these are too: this one, or one before it
  std::size_t firsts = 0;       ///< of the same table, whose elements begin where these do: this one, or one before it
  std::size_t columns = 0;      ///< words of a row
  bool has_counts = false;      ///< a row may have more or fewer elements than one: its last word says how many
  bool is_listed = false;       ///< with counts: each element has a first of its own at the end that knows the rows
  std::size_t value_bytes = 0;  ///< of one element
  std::int64_t step_bytes = 0;  ///< from one element of a row to the next, where they are
  bool may_be_apart = false;    ///< values need not be in the letter
};

/// The rows of one reduction at the end that knows them. What it shares with one before it is empty: peers and words
/// where these have the same rows, and firsts where their elements lie alike.
struct DecidedRows {
  std::size_t rows = 0;
  Column peers;               ///< the other ends; a table's
  Column firsts;              ///< where their first elements, or listed all, lie, bytes in a buffer; or integers
  std::vector<Column> words;  ///< by column; a table's
};

/// Where the words of a reduction lie in a letter.
struct RowTable {
  bool is_wide = false;
  std::size_t rows = 0;
  const std::byte* words = nullptr;

  std::int64_t at(std::size_t column, std::size_t row) const {
    const std::size_t n = column * rows + row;
    std::int64_t wide = 0;
    std::int32_t narrow = 0;
    if (is_wide) std::memcpy(&wide, words + 8 * n, 8);
    else std::memcpy(&narrow, words + 4 * n, 4);
    return is_wide ? wide : narrow;
  }
};

/// The elements of one row, mostly one, that follow each other.
inline void copy_row(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes == 8) std::memcpy(to, from, 8);
  else if (bytes == 4) std::memcpy(to, from, 4);
  else if (bytes == 16) std::memcpy(to, from, 16);
  else if (bytes > 0) jit::copy_long(to, from, bytes);
}

/// The same where they lie so far apart.
void copy_row(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::size_t count,
              std::size_t value_bytes);

/// From where DecidedRows have it, `count` elements that follow each other then; `base` null: `first` is the value.
inline void gather_row(std::byte* to, const std::byte* base, std::int64_t first, std::int64_t step, std::size_t count,
                       std::size_t value_bytes) {
  if (count == 0) return;  // it may begin anywhere
  // An integer's low bytes are its value in every type of its size.
  const std::byte* const from = base ? base + first : reinterpret_cast<const std::byte*>(&first);
  const auto bytes = static_cast<std::int64_t>(value_bytes);
  if (step == bytes || count == 1) copy_row(to, from, count * value_bytes);
  else copy_row(to, bytes, from, step, count, value_bytes);
}

class RowLetters {
 public:
  RowLetters() = default;
  /// `forms`: by reduction. `have_values`: those of a push; letters of a pull only ask.
  RowLetters(std::vector<RowForm> forms, bool have_values, std::int64_t rank_count);

  std::span<const RowForm> forms() const { return forms_; }

  // Writing: whoever finds rows puts them into rows(); then count(), and for each share lay_out() and begin(); fill().

  DecidedRows& rows(std::size_t reduction) { return rows_[reduction]; }
  const DecidedRows& rows(std::size_t reduction) const { return rows_[reduction]; }
  /// Whoever has them.
  const Column& peers(std::size_t reduction) const { return rows_[forms_[reduction].table].peers; }
  const Column& firsts(std::size_t reduction) const { return rows_[forms_[reduction].firsts].firsts; }
  std::int64_t count_of(std::size_t reduction, std::size_t row) const {
    const RowForm& form = forms_[reduction];
    return form.has_counts ? rows_[form.table].words.back()[row] : 1;
  }

  /// Divides the rows into shares: what goes to one rank each.
  void count();
  std::span<const std::int64_t> sharers() const { return sharers_; }  ///< peers, by share
  /// Where the parts of a share's letter will lie; returns its bytes. `are_apart`: values of a push that may be.
  std::size_t lay_out(std::size_t share, bool are_apart = false);
  /// Writes what stands before the rows.
  void begin(std::size_t share, std::uint64_t uniform_hash, std::byte* letter, bool has_body = false);
  /// Writes a reduction's rows into all letters. `base`: what `firsts` count from; null where they are the values.
  void fill(std::size_t reduction, const std::byte* base);

  /// What has gone to a rank, after count(): null where there was nothing.
  struct Share {
    std::size_t rows = 0, elements = 0;
  };
  std::optional<Share> share_of(std::size_t reduction, std::int64_t peer) const;
  /// The rows' firsts, and counts if wanted, sharer by sharer: those of each from starts[share] on, which is moved on.
  /// Listed elements are rows of one.
  void copy_by_share(std::size_t reduction, std::span<std::size_t> starts, std::int64_t* firsts,
                     std::int64_t* counts) const;
  /// The number of a rank's share, which has one.
  std::size_t number_of(std::int64_t peer) const {
    return static_cast<std::size_t>(numbers_[static_cast<std::size_t>(peer)]);
  }

  // Reading.

  /// Where the words of each reduction lie; returns the byte where the values begin. Throws TransportError (KP-T012)
  /// where the letter is shorter than it says.
  std::size_t read(std::span<const std::byte> letter, std::vector<RowTable>& tables) const;

 private:
  /// The rows of one reduction in one letter, and where the next goes.
  struct Cursor {
    std::size_t rows = 0, elements = 0, at = 0;
    std::size_t words_offset = 0, values_offset = 0;  ///< bytes in the letter; 0: none
    bool is_wide = false;
    std::byte *words = nullptr, *values = nullptr;  ///< null: none
  };

  /// Where rows begin whose peer is not that of the row before, and their end; empty where these are many.
  struct Runs {
    std::vector<std::size_t> starts;  ///< room for all
    std::size_t count = 0;            ///< 0: empty
  };

  void add_share(std::int64_t peer);
  void note_runs(std::size_t table);
  void count_rows(std::size_t table);
  template <class Word, std::size_t columns, std::size_t bytes>
  [[gnu::hot]] void fill_rows(std::size_t reduction, const std::byte* base);
  template <class Word, std::size_t bytes>
  [[gnu::hot]] void fill_runs(std::size_t reduction, const std::byte* base);
  template <class Word, std::size_t bytes>
  [[gnu::hot]] void fill_listed(std::size_t reduction, const std::byte* base);

  std::vector<RowForm> forms_;
  bool have_values_ = false;
  std::vector<DecidedRows> rows_;
  std::vector<std::int64_t> sharers_;
  std::vector<std::int32_t> numbers_;         ///< of shares, by peer; -1: none
  std::vector<std::vector<Cursor>> cursors_;  ///< by reduction, by share
  std::vector<Runs> runs_;                    ///< by table
};

}  // namespace kplan
