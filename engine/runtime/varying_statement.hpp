#pragma once
// A statement whose pattern is found anew at every run. One sparse exchange carries everything where the sender knows
// its pattern, or both ends do; where only receivers know, a first one carries what they want and a second the values.

#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/runtime/known_patterns.hpp"
#include "engine/runtime/pattern_letter.hpp"
#include "engine/runtime/row_statement.hpp"
#include "engine/runtime/run_context.hpp"
#include "engine/runtime/sent_letters.hpp"
#include "engine/runtime/uniform_check.hpp"
#include "kplan/transport.hpp"

namespace kplan {

class VaryingStatement {
 public:
  /// Collective: makes the exchanges. `rows`: null where the pattern does not go by rows.
  VaryingStatement(const BoundPlan& bound, std::size_t number, transport::Transport& transport,
                   transport::Clock::time_point deadline, std::unique_ptr<RowStatement> rows);

  /// Works out what this rank knows alone and sends it. Errors are kept, and told to the others, so that nobody waits
  /// for what never comes. `compared`: ranks, this one's peers in that too, that get a hash of the uniform values in
  /// any case.
  void begin(const RunContext& context, std::span<const int> compared);
  /// Moves it on; whether everything that apply() needs is here. All reads of buffers are done then, but for values
  /// that stay on this rank.
  bool advance(const RunContext& context);
  /// Applies what has come.
  void apply(const RunContext& context);

  /// Whether its runs may wait for certain ranks only, so that uniform values must be compared apart from its letters,
  /// in every run.
  bool can_settle() const { return can_settle_; }
  /// Those of the compared ranks whose uniform values differ from this one's, once advance() is done; ascending.
  const std::vector<int>& differing() const { return differing_; }
  /// World ranks that it still waits for.
  std::vector<int> waits_for() const;
  /// What went wrong in this run, here or on a rank that told of it; null when nothing did.
  const std::exception_ptr& failure() const { return failure_; }

 private:
  enum class Stage { asking, filling, moving, settling, done };

  std::vector<int> others() const;
  Reuse reuse() const { return now_ == &found_ ? Reuse::kernels : Reuse::program; }
  void begin_draft(const RunContext& context);
  void send_first(const RunContext& context);
  void take_first(const RunContext& context);
  void take_letter(const RunContext& context, const transport::ReceivedLetter& letter);
  void take_rows(const RunContext& context);
  void place_bodies(const RunContext& context);
  void finish_told(const RunContext& context, std::vector<Notice> told);
  void make_receiving(const RunContext& context);
  void go_general_way(const RunContext& context);
  void reply(const RunContext& context);
  void answer_rows(const RunContext& context);
  void take_replies(const RunContext& context);
  StatementProgram& make_sending(const RunContext& context);
  void send_known(const RunContext& context);
  void pack(const RunContext& context);
  void begin_first();
  void begin_settled();
  void begin_settling();
  void compare_hashes();
  void compare_ends() const;
  void order_arrived();
  const ArrivedPattern* arrived_from(std::int64_t peer) const;
  void note(const std::exception_ptr& failure) {
    if (!failure_) failure_ = failure;
  }
  bool is_pull_told() const { return is_told_ && statement_.is_pull; }

  const Statement& statement_;
  UniformHash uniform_;
  std::size_t number_;
  int rank_, size_;  ///< in the world
  Knowledge knowledge_;
  bool is_told_;
  std::unique_ptr<transport::SparseExchange> first_;
  std::unique_ptr<transport::SparseExchange> second_;  ///< of values that were asked for, or to settle patterns
  /// All other ranks, where each gets a letter in every first exchange; empty where receivers find out who sends.
  std::vector<int> always_told_;
  std::shared_ptr<RowStatement> rows_;  ///< null where the statement goes the general way
  SentLetters letters_;

  KnownPatterns known_;
  bool can_settle_;     ///< patterns of known_; not among few ranks
  FoundPattern found_;  ///< at this run; kept until the next has its kernels: it keeps the code

  // Of the run in progress.
  Stage stage_ = Stage::done;
  std::optional<StatementDraft> draft_;
  FoundPattern* now_ = &found_;
  bool is_known_ = false;  ///< from an earlier run
  KnownPatterns::Standing standing_ = KnownPatterns::Standing::is_new;
  std::vector<int> sources_;
  std::vector<ArrivedPattern> arrived_;   ///< by ascending sender
  std::vector<RowStatement::Came> came_;  ///< letters of rows
  bool is_by_rows_ = false;               ///< what has come is applied row by row
  std::vector<int> asked_;                ///< world ranks that have been asked for values
  Unfilled<std::byte> own_answer_;        ///< to rows that this rank has asked itself for
  std::vector<RowStatement::Came> answers_;
  std::uint64_t uniform_hash_ = 0;
  std::span<const int> compared_;
  std::vector<int> differing_;
  std::exception_ptr failure_;
};

}  // namespace kplan
