#pragma once
// Runs of a push statement whose pattern only senders know, without a schedule: the sender's environments are rows,
// whose elements are copied into letters one row after the other; their receivers work out the places of the rows that
// have come and write them in the same order. For statements of plain form, see of().

#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/analysis/enumeration.hpp"
#include "engine/analysis/pattern.hpp"
#include "engine/runtime/ready_call.hpp"
#include "kplan/transport.hpp"

namespace kplan {

class RowStatement {
 public:
  /// Null where the statement is not of the kind, which is the same on all ranks: values are elements that follow each
  /// other, or integers; every reduction has a buffer of its own. `bound`: as its group sees it.
  static std::unique_ptr<RowStatement> of(const BoundPlan& bound, std::size_t number);

  /// Whether a letter is one of rows, and what its sender has put into it.
  static bool is_rows(std::span<const std::byte> letter);
  static std::uint64_t uniform_hash_in(std::span<const std::byte> letter);

  /// Enumerates what this rank sends and makes the letters, but for its own share; they lie in the exchange's memory or
  /// in this object's until the next run. `state`: with the values of this run. Throws what draft_statement would.
  void send(const RankState& state, const std::vector<BoundMemory>& memory, std::uint64_t uniform_hash,
            transport::SparseExchange& exchange, std::vector<transport::OutgoingLetter>& letters);

  bool has_own() const { return !own_.empty(); }
  std::int64_t number_of(std::int64_t world_rank) const;

  /// One letter, from a number of the group.
  struct Came {
    std::int64_t from = 0;
    std::span<const std::byte> letter;
  };
  /// Adds this rank's share to the letters that have come (by ascending world rank), and works out where all of them
  /// go. False where something is wrong with the pattern: see notices().
  bool take(std::vector<Came>& letters);
  /// What the letters tell, without the own one: for finish_statement, which finds out what is wrong.
  std::vector<Notice> notices(std::span<const Came> letters) const;
  /// The values in a letter, as a StatementSchedule has them.
  std::span<const std::byte> payload(std::span<const std::byte> letter) const;

  /// Writes what has come. Calls note(call) where a divisor is zero.
  void apply(const std::vector<BoundMemory>& memory, const std::function<void(const ReadyCall&)>& note);

 private:
  /// The rows of one reduction that have come in one letter.
  struct Segment {
    std::size_t rows = 0, elements = 0;
    const std::byte* values = nullptr;
  };
  /// One reduction.
  struct Part {
    const Reduction* reduction = nullptr;
    std::vector<int> told;    ///< variables that the place uses
    ExprPtr value;            ///< an element, or an integer
    bool has_counts = false;  ///< a row may have more or fewer elements than one
    std::size_t value_bytes = 0;
    std::optional<ReadyCall> update;  ///< null: values are copied
    std::optional<ColumnProgram> find_values, find_places;

    std::size_t rows = 0;      ///< to send
    Column peers, firsts;      ///< receivers; bytes in the value's buffer, or the value
    std::vector<Column> sent;  ///< columns of the letter: words by told variable, counts where there are any

    std::vector<Segment> segments;  ///< that have come, by sender
    std::size_t placed_rows = 0;
    Column place_firsts, place_counts;  ///< bytes in the place's buffer
    bool is_element() const { return value->kind == ExprKind::element; }
    /// The elements of a row to send.
    std::size_t count_of(std::size_t row) const { return has_counts ? static_cast<std::size_t>(sent.back()[row]) : 1; }
  };
  /// Where the next row of a reduction goes in a letter.
  struct Cursor {
    std::size_t rows = 0, elements = 0, at = 0;
    std::size_t words_offset = 0, values_offset = 0;  ///< bytes in the letter
    bool is_wide = false;
    std::byte *words = nullptr, *values = nullptr;
  };
  /// What one rank is sent: a cursor for each reduction.
  struct Share {
    std::int64_t peer = 0;
    std::vector<Cursor> cursors;
  };
  /// Where the parts of a letter lie.
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

  RowStatement(const BoundPlan& bound, std::size_t number);
  void add(Part& part, const Block& block, const std::int64_t* peers);
  Share& share_of(std::int64_t peer);
  void count_shares();
  std::size_t lay_out(Share& share) const;
  void begin(Share& share, std::uint64_t uniform_hash, std::byte* letter) const;
  void fill(const std::vector<BoundMemory>& memory);
  void copy_values(const Part& part, std::size_t row, Cursor& to, const std::byte* base) const;
  const std::byte* read_tables(std::span<const std::byte> letter, std::vector<Table>& tables) const;
  bool place_rows(Part& part, const Table& table);
  bool can_be_listed(const Part& part) const;
  bool are_distinct(const Part& part);
  void apply_copies(const Part& part, std::byte* base) const;

  BoundPlan bound_;
  const Statement& s_;
  std::vector<Part> parts_;
  Enumeration enumeration_;
  Block block_;

  std::vector<Share> shares_;
  std::size_t share_count_ = 0;
  std::vector<std::int32_t> share_numbers_;       ///< by peer; -1: none
  std::vector<std::vector<std::byte>> memories_;  ///< by share, of letters that have no room elsewhere
  std::span<const std::byte> own_;                ///< this rank's share
  mutable std::vector<Table> tables_;
  std::vector<std::uint64_t> marks_;
  std::vector<jit::ListEntry> listed_;
};

}  // namespace kplan
