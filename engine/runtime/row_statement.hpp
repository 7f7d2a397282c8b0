#pragma once
// Runs of a statement whose pattern only one end knows, without a schedule. That end's environments are rows. Of a
// push, the sender copies the elements of its rows into letters, one row after the other; their receivers work out the
// places of the rows that have come and write them in the same order. Of a pull, the receiver asks for rows, and is
// answered with their values in the same order. For statements of plain form, see of().

#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/analysis/enumeration.hpp"
#include "engine/analysis/pattern.hpp"
#include "engine/runtime/ready_call.hpp"
#include "engine/runtime/ready_rows.hpp"
#include "kplan/transport.hpp"

namespace kplan {

class RowStatement {
 public:
  /// Null where the statement is not of the kind, which is the same on all ranks: values are elements that follow each
  /// other, or integers; every reduction has a buffer of its own. `bound`: as its group sees it. `wait`: for machine
  /// code; throws CompilerError then.
  static std::unique_ptr<RowStatement> of(const BoundPlan& bound, std::size_t number, jit::Wait wait);

  /// Whether a letter is one of rows, and what its sender has put into it.
  static bool is_rows(std::span<const std::byte> letter);
  static std::uint64_t uniform_hash_in(std::span<const std::byte> letter);

  /// Enumerates what this rank sends, or asks for, and makes the letters, but for its own share; they lie in the
  /// exchange's memory or in this object's until the next run. `state`: with the values of this run. Throws what
  /// draft_statement would.
  void send(const RankState& state, const std::vector<BoundMemory>& memory, std::uint64_t uniform_hash,
            transport::SparseExchange& exchange, std::vector<transport::OutgoingLetter>& letters);

  bool has_own() const { return !own_.empty(); }
  /// What rows are found by, and what each call is for; for listings.
  std::vector<std::pair<std::string, const RowCall*>> calls() const;
  const BoundPlan& bound() const { return bound_; }  ///< ranks are numbers of its group here

  /// One letter, from a number of the group.
  struct Came {
    std::int64_t from = 0;
    std::span<const std::byte> letter;
  };
  /// Adds this rank's share to the letters that have come (by ascending world rank), and works out where the elements
  /// of all of them are here. False where something is wrong with the pattern: see notices().
  bool take(std::vector<Came>& letters);

  /// Of a pull, after take(): the bytes of the answer to letter number n, and their values. `to`: so many bytes.
  std::size_t answer_bytes(std::size_t n) const;
  void answer(std::size_t n, const std::vector<BoundMemory>& memory, std::byte* to) const;
  /// Of a pull: the answers that have come, in any order; from this rank to itself too. False where something is wrong.
  bool take_answers(std::vector<Came>& answers);

  /// What the letters tell, without the own one: for finish_statement, which finds out what is wrong.
  std::vector<Notice> notices(std::span<const Came> letters) const;
  /// The values in a letter, as a StatementSchedule has them.
  std::span<const std::byte> payload(std::span<const std::byte> letter) const;

  /// Writes what has come, after take() of a push or take_answers(). Calls note(call) where a divisor is zero.
  void apply(const std::vector<BoundMemory>& memory, const std::function<void(const ReadyCall&)>& note);

 private:
  /// The rows of one reduction that have come in one letter.
  struct Segment {
    std::size_t rows = 0, elements = 0;
    std::size_t first_row = 0;
    const std::byte* values = nullptr;
  };
  /// What one end of a reduction evaluates: the place, an element, or an integer.
  struct End {
    ExprPtr expression;
    std::optional<ColumnProgram> program;
    /// Of an element: where it lies is its number times `unit`, and `offset`: bytes in the buffer, but numbers of
    /// elements where these go to a list.
    std::int64_t unit = 1, offset = 0;

    bool is_element() const { return expression->kind == ExprKind::element; }
    int buffer() const { return expression->id; }
    void scale(std::int64_t* firsts, std::size_t count) const {
      for (std::size_t row = 0; row < count; ++row) firsts[row] = firsts[row] * unit + offset;
    }
  };
  /// The rows of one reduction in the letter to one rank, and where the next goes.
  struct Cursor {
    std::size_t rows = 0, elements = 0, at = 0;
    std::size_t words_offset = 0, values_offset = 0;  ///< bytes in the letter
    bool is_wide = false;
    std::byte *words = nullptr, *values = nullptr;
  };
  /// One reduction.
  struct Part {
    const Reduction* reduction = nullptr;
    std::vector<int> told;    ///< variables that the other end uses
    std::size_t table = 0;    ///< the part whose rows and words these are too: this one, or one before it
    End near, far;            ///< of the end that knows the pattern, of the other
    bool has_counts = false;  ///< a row may have more or fewer elements than one, and says how many
    bool are_single = false;  ///< none can, at either end
    std::size_t value_bytes = 0;
    std::optional<ReadyCall> update;     ///< null: values are copied
    std::optional<ReadyRows> told_rows;  ///< finds the rows that have come; null where a column program must

    std::size_t rows = 0;         ///< of this end's environments
    Column peers, firsts;         ///< the other ends; where it is here, or the integer
    std::vector<Column> sent;     ///< columns of the letter: words by told variable, counts where there are any
    std::vector<Cursor> cursors;  ///< by share

    // What has come: rows that were told to this end; then, of a pull, the rows that it asked for, by sender.
    std::vector<Segment> segments;  ///< by letter
    std::size_t come_rows = 0;
    Column come_firsts, come_counts;  ///< as `firsts`; no counts where rows are single
    std::int64_t come_count(std::size_t row) const { return are_single ? 1 : come_counts[row]; }
    /// The elements of a row of this end.
    std::size_t count_of(std::size_t row) const { return has_counts ? static_cast<std::size_t>(sent.back()[row]) : 1; }
  };
  /// Where the words of a part lie in a letter.
  struct Table {
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

  RowStatement(const BoundPlan& bound, std::size_t number, jit::Wait wait);
  bool find_by_code();
  void add(Part& part, const Block& block, const std::int64_t* peers);
  /// Its number. Shares are what goes to one rank each.
  std::size_t share_of(std::int64_t peer) {
    if (share_numbers_[static_cast<std::size_t>(peer)] < 0) [[unlikely]]
      add_share(peer);
    return static_cast<std::size_t>(share_numbers_[static_cast<std::size_t>(peer)]);
  }
  void add_share(std::int64_t peer);
  void count_shares();
  void count_rows(Part& part);
  std::size_t lay_out(std::size_t share);
  void begin(std::size_t share, std::uint64_t uniform_hash, std::byte* letter);
  void fill(const std::vector<BoundMemory>& memory);
  template <class Word, std::size_t columns, std::size_t bytes>
  void fill_part(Part& part, const std::byte* base);
  static std::byte* copy_values(const std::byte* base, std::int64_t first, std::size_t bytes, std::byte* to);
  const std::byte* read_tables(std::span<const std::byte> letter, std::vector<Table>& tables) const;
  /// Adds the segment, whose values lie behind byte `at` of the letter, which is moved on.
  static void add_segment(Part& part, Segment segment, std::span<const std::byte> letter, std::size_t& at);
  bool locate_rows(Part& part, const Table& table);
  bool locate_by_code(Part& part, const Table& table);
  bool can_be_applied(bool are_assigned_distinct);
  bool can_be_listed(const Part& part) const;
  /// Whether no element is met twice; rows of counts[row] elements, or of one each.
  bool are_distinct(const Part& part, std::size_t rows, const std::int64_t* firsts, const std::int64_t* counts);
  /// The same of rows of one element, of so many bytes apart or multiples of it.
  bool are_distinct_elements(std::size_t rows, const std::int64_t* firsts, std::int64_t bytes);
  void apply_copies(const Part& part, std::byte* base) const;
  template <std::size_t bytes>
  static void write_single(const std::int64_t* firsts, const Segment& segment, std::byte* base);

  BoundPlan bound_;
  const Statement& s_;
  std::vector<Part> parts_;
  Enumeration enumeration_;
  Block block_;
  std::optional<ReadyRows> decided_rows_;  ///< null where the enumeration must find them
  std::vector<std::int64_t*> columns_;     ///< arguments of a ReadyRows
  std::vector<const std::byte*> word_columns_;
  std::vector<std::int64_t> room_, found_;

  std::vector<std::int64_t> sharers_;             ///< peers, by share
  std::vector<std::int32_t> share_numbers_;       ///< by peer; -1: none
  std::vector<std::vector<std::byte>> memories_;  ///< by share, of letters that have no room elsewhere
  std::span<const std::byte> own_;                ///< this rank's share
  mutable std::vector<Table> tables_;
  std::vector<std::uint64_t> marks_;
  std::vector<jit::ListEntry> listed_;
};

}  // namespace kplan
