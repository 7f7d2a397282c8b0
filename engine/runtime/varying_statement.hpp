#pragma once
// A statement whose pattern is found anew at every run. One sparse exchange carries everything where the sender knows
// its pattern, or both ends do; where only receivers know, a first one carries what they want and a second the values.

#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "engine/runtime/known_way.hpp"
#include "engine/runtime/rows_way.hpp"
#include "engine/runtime/uniform_check.hpp"

namespace kplan {

class VaryingStatement {
 public:
  /// Collective: makes the exchanges. `rows`: null where the pattern does not go by rows. `enclosed`: what its letters
  /// carry, for ranks that each get one in every run.
  VaryingStatement(const BoundPlan& bound, std::size_t number, transport::Transport& transport,
                   transport::Clock::time_point deadline, std::shared_ptr<RowStatement> rows, Enclosed& enclosed);

  /// Works out what this rank knows alone and sends it. Errors are kept, and told to the others, so that nobody waits
  /// for what never comes. `compared`: ranks, this one's peers in that too, that get a hash of the uniform values in
  /// any case.
  void begin(const RunContext& context, std::span<const int> compared);
  /// Moves it on; whether everything that apply() needs is here. All reads of buffers are done then, but for values
  /// that stay on this rank.
  bool advance(const RunContext& context);
  /// Applies what has come, and what letters have carried in any case.
  void apply(const RunContext& context);

  /// Whether its runs may wait for certain ranks only, so that uniform values must be compared apart from its letters,
  /// in every run.
  bool can_settle() const { return known_ && known_->can_settle(); }
  /// Those of the compared ranks whose uniform values differ from this one's, once advance() is done; ascending.
  const std::vector<int>& differing() const { return differing_; }
  /// World ranks that it still waits for.
  std::vector<int> waits_for() const;
  /// What went wrong in this run, here or on a rank that told of it; null when nothing did.
  const std::exception_ptr& failure() const { return failure_; }

 private:
  enum class Stage { asking, filling, answering, settling, done };

  std::vector<int> others() const;
  /// Whether the values are asked for.
  bool is_asked_for() const { return !known_ && statement_.is_pull; }
  Outbox outbox(transport::SparseExchange& exchange) { return {letters_, exchange, uniform_hash_}; }
  void note(const std::exception_ptr& failure) {
    if (!failure_) failure_ = failure;
  }

  void choose_way(const RunContext& context);
  void begin_first(const RunContext& context);
  void begin_settled();
  void take_first(const RunContext& context);
  void take_apart();
  void take_letter(const RunContext& context, const transport::ReceivedLetter& letter);
  void compare_hashes();
  void place_bodies(const RunContext& context);
  Stage begin_second(const RunContext& context);
  void answer(const RunContext& context);
  void take_answers(const RunContext& context);
  void begin_settling();

  const Statement& statement_;
  UniformHash uniform_;
  int rank_, size_;  ///< in the world
  /// Its ways: by rows, known where both ends work the pattern out, or told; by rows and known where what is new goes
  /// by rows.
  std::unique_ptr<RowsWay> by_rows_;
  std::unique_ptr<KnownWay> known_;
  std::unique_ptr<ToldWay> told_;
  std::unique_ptr<transport::SparseExchange> first_;
  std::unique_ptr<transport::SparseExchange> second_;  ///< of values that were asked for, or to settle patterns
  /// All other ranks, where each gets a letter in every first exchange; empty where receivers find out who sends.
  std::vector<int> always_told_;
  Enclosed& enclosed_;
  SentLetters letters_;

  // Of the run in progress.
  Stage stage_ = Stage::done;
  VaryingWay* way_ = nullptr;
  std::vector<int> asked_, requesters_;  ///< world ranks that have been asked for values, or have asked for some
  std::vector<transport::ReceivedLetter> come_;  ///< in the first exchange, without what they carry
  std::vector<const std::byte*> carried_;        ///< that, by enclosed message
  std::uint64_t uniform_hash_ = 0;
  std::span<const int> compared_;
  std::vector<int> differing_;
  std::exception_ptr failure_;
};

}  // namespace kplan
