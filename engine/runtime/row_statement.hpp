#pragma once
// Runs of a statement whose pattern only one end knows, or tells the other all the same, without a schedule. That end's
// environments are rows. Of a push, the sender copies the elements of its rows into letters, one row after the other;
// their receivers work out the places of the rows that have come and write them in the same order. Of a pull, the
// receiver asks for rows, and is answered with their values in the same order. For statements of plain form, see of().

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/analysis/pattern.hpp"
#include "engine/runtime/ready_call.hpp"
#include "engine/runtime/row_finder.hpp"
#include "engine/runtime/sent_letters.hpp"
#include "kplan/transport.hpp"

namespace kplan {

class RowStatement {
 public:
  /// Null where the statement does not go by rows (row_choice.hpp): values are elements one stride apart, or
  /// integers; every reduction has a buffer of its own. `bound`: as its group sees it. `wait`: for machine code; throws
  /// CompilerError then.
  static std::unique_ptr<RowStatement> of(const BoundPlan& bound, std::size_t number, jit::Wait wait);

  /// Enumerates what this rank sends, or asks for, and makes the letters, but for its own share, which is kept here.
  /// Long slices of a push are bodies, which this object lists until the next run, of letters for which the exchange
  /// has no room. `state`: with the values of this run. Throws what draft_statement would.
  void send(const RankState& state, const std::vector<BoundMemory>& memory, const Outbox& to);

  bool has_own() const { return !own_.empty(); }
  /// What rows are found by, and what each call is for; for listings.
  std::vector<std::pair<std::string, const RowCall*>> calls() const { return finder_.calls(); }
  const BoundPlan& bound() const { return bound_; }  ///< ranks are numbers of its group here

  /// One letter, from a number of the group.
  struct Came {
    std::int64_t from = 0;
    std::span<const std::byte> letter;
    bool has_body = false;
  };
  /// Adds this rank's share to the letters that have come (by ascending world rank), and works out where the elements
  /// of all of them are here. False where something is wrong with the pattern: see notices().
  bool take(std::vector<Came>& letters);
  /// Of a push, after take(): where the body of letter number n goes; until the next take().
  std::span<const std::span<std::byte>> places(std::size_t n, const std::vector<BoundMemory>& memory);

  /// Of a pull, after take(): the bytes of the answer to letter number n, and their values. `to`: so many bytes.
  std::size_t answer_bytes(std::size_t n) const;
  void answer(std::size_t n, const std::vector<BoundMemory>& memory, std::byte* to) const;
  /// Of a pull: the answers that have come, in any order; from this rank to itself too. False where something is wrong.
  bool take_answers(std::vector<Came>& answers);

  /// What the letters tell, without the own one: for finish_statement, which finds out what is wrong.
  std::vector<Notice> notices(std::span<const Came> letters) const;
  /// The values in a letter, as a StatementSchedule has them.
  std::span<const std::byte> payload(std::span<const std::byte> letter) const;

  /// Writes what has come, after take() of a push or take_answers(). Returns the first call that has met a zero
  /// divisor; null: none.
  const ReadyCall* apply(const std::vector<BoundMemory>& memory);

 private:
  /// One reduction.
  struct Part {
    const PartRows* rows;             ///< the finder's
    std::optional<ReadyCall> update;  ///< null: values are copied
    /// Rows that were told to this end, and to parts that are alike there; then, of a pull, the rows that it asked for.
    ArrivedRows come;
    std::vector<const std::byte*> values;  ///< that have come, by segment; null: they are not in the letter
  };

  /// `s`: the statement as its where-list is walked.
  RowStatement(const BoundPlan& bound, std::size_t number, Statement s, jit::Wait wait);
  bool is_long(std::size_t share, std::size_t least_bytes) const;
  void add_bodies(const std::vector<BoundMemory>& memory, std::span<transport::OutgoingLetter> letters);
  /// The rows that were told and are those of this part, too.
  const ArrivedRows& told_rows(const Part& part) const { return parts_[part.rows->far_firsts].come; }
  /// The rows that this part's values go to.
  const ArrivedRows& target_rows(const Part& part) const {
    return parts_[s_.is_pull ? part.rows->form.firsts : part.rows->far_firsts].come;
  }
  template <class Leader, class F>
  bool are_distinct_where_assigned(const Leader& first_alike, const F& are_distinct) const;
  bool can_be_listed() const;
  bool is_apart(const Part& part, const Came& came) const {
    return part.rows->form.may_be_apart && (came.has_body || came.from == bound_.state.rank);
  }
  void copy_own(const Part& part, const std::vector<BoundMemory>& memory) const;

  BoundPlan bound_;
  const Statement s_;
  RowFinder finder_;
  std::vector<Part> parts_;
  RowLetters letters_;  ///< of the rows of this rank's environments

  Unfilled<std::byte> own_memory_;
  std::span<const std::byte> own_;                               ///< this rank's share
  std::size_t own_segment_ = 0;                                  ///< its number among those that have come
  std::vector<std::size_t> starts_;                              ///< by share: where its rows begin among all answers'
  std::vector<std::vector<std::span<const std::byte>>> bodies_;  ///< of letters, by share
  std::vector<std::vector<std::span<std::byte>>> places_;        ///< by letter that has come
  mutable std::vector<RowTable> tables_;
  DistinctRows distinct_;
  std::vector<jit::ListEntry> listed_;
};

}  // namespace kplan
