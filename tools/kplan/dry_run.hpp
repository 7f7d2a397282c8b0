#pragma once
// Schedules without a run: what ranks of a world of any size would do. Where ranks must tell each other what only one
// end of a message knows, all of them are looked at, as long as they are not too many.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/agreement.hpp"
#include "engine/bind.hpp"
#include "tools/kplan/contents.hpp"

namespace kplan::cli {

class DryRun {
 public:
  DryRun(const Contents& contents, std::int64_t size);

  std::int64_t size() const { return size_; }

  /// A rank with its schedule; varying patterns are those of the first run. Throws PlanError where the plan is wrong
  /// for these values, also where uniform values differ from those of the ranks visited before.
  struct Visit {
    BoundPlan bound;
    Schedule schedule;
  };
  Visit visit(std::int64_t rank);

  /// Whether schedules lack what other ranks would tell: there are too many to look at.
  bool leaves_out_told() const { return tells_ && size_ > most_told_ranks; }

  /// Compares the ends of messages between ranks visited, where they could differ. Throws PlanError KP-A003.
  void compare_ends() const;

 private:
  static constexpr std::int64_t most_told_ranks = 1024;
  static constexpr std::int64_t most_placed_ranks = std::int64_t{1} << 24;  ///< 70 bytes each, and 0.25 us

  struct End {
    int statement = 0;
    std::int64_t sender = 0, receiver = 0, element_count = 0;
    bool is_send = false;
    std::uint64_t digest = 0;
  };
  /// A rank's values; the memory is that of varying buffers.
  struct RankValues {
    BoundValues values;
    std::optional<RankMemory> memory;
  };
  RankValues values_of(std::int64_t rank);
  void compare_facts(const BoundPlan& bound, std::int64_t rank);
  const std::vector<std::vector<Place>>& places(const BoundPlan& bound);
  void tell();

  const Contents& contents_;
  std::int64_t size_;
  std::vector<Knowledge> knowledge_;  ///< by statement
  bool tells_ = false, varies_ = false, is_told_ = false;
  std::vector<RankValues> kept_;  ///< bound plans that were given out refer to them
  std::vector<std::int64_t> visited_;
  std::vector<Fact> facts_;  ///< of the rank visited first
  std::vector<End> ends_;
  std::vector<std::vector<Place>> places_;
  std::map<std::int64_t, std::vector<std::pair<std::int64_t, Unfilled<std::byte>>>> letters_;  ///< by receiver
};

/// The plan with planes as buffers, as it is run. Not to be used when `plan` has gone.
std::shared_ptr<const PlanModel> model_as_run(const Plan& plan);

/// What is left to runs where varying parameters only say which planes are meant: `; every run looks where these are:
/// ...`; empty for other statements. `plan`: as it is run.
std::string planes_text(const PlanModel& plan, const Statement& s);

/// All ranks of up to `most`; of more, the first, the middle and the last ones.
std::vector<std::int64_t> ranks_to_visit(std::int64_t size, std::int64_t most);

/// When a statement's pattern is found: `compile`, or `run` where it varies.
const char* found_at(const Knowledge& knowledge);

/// A statement's text without line breaks.
std::string on_one_line(std::string text);

/// `0, 1, 2`
std::string listed(const std::vector<std::int64_t>& ranks);

}  // namespace kplan::cli
