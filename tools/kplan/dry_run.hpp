#pragma once
// Schedules without a run: what ranks of a world of any size would do, one statement at a time, so that a statement
// that this version does not run leaves the others visible.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/agreement.hpp"
#include "engine/bind.hpp"
#include "tools/kplan/contents.hpp"

namespace kplan::cli {

/// What is known of a statement without values.
struct StatementNote {
  Knowledge knowledge;
  std::string not_run;  ///< why this version does not run it; empty where it does
};

class DryRun {
 public:
  DryRun(const Contents& contents, std::int64_t size);

  std::int64_t size() const { return size_; }
  /// By statement. `not_run` is filled in as ranks are visited.
  const std::vector<StatementNote>& statements() const { return statements_; }

  /// The schedule of each statement on that rank; nothing for those that this version does not run. Throws PlanError
  /// where the plan is wrong for these values, also where uniform values differ from those of the ranks visited before.
  std::vector<std::optional<StatementSchedule>> visit(std::int64_t rank);

  /// Compares the ends of messages between ranks visited, where they could differ. Throws PlanError KP-A003.
  void compare_ends() const;

 private:
  struct End {
    std::size_t statement = 0;
    std::int64_t sender = 0, receiver = 0, element_count = 0;
    bool is_send = false;
    std::uint64_t digest = 0;
  };
  void compare_facts(const BoundPlan& bound);

  const Contents& contents_;
  std::int64_t size_;
  std::vector<StatementNote> statements_;
  std::vector<std::int64_t> visited_;
  std::vector<Fact> facts_;  ///< of the rank visited first
  std::vector<End> ends_;
};

/// All ranks of up to `most`; of more, the first, the middle and the last ones.
std::vector<std::int64_t> ranks_to_visit(std::int64_t size, std::int64_t most);

/// The knowledge of each statement, without values. Throws PlanError where a claim is wrong.
std::vector<StatementNote> notes_of(const PlanModel& plan);

/// A statement's text without line breaks.
std::string on_one_line(std::string text);

/// `0, 1, 2`
std::string listed(const std::vector<std::int64_t>& ranks);

}  // namespace kplan::cli
