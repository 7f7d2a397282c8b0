#pragma once
// Messages that are not packed: where the sender's buffers lie in memory that the receiver can read, one kernel of the
// receiver goes from there to its own places. The sender lends it the buffers and a description of which elements of
// them make the message; the receiver makes its kernels when it first sees that, and declines what it cannot use.

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/runtime/ready_call.hpp"
#include "kplan/transport.hpp"
#include "transports/environment.hpp"

namespace kplan {

/// The cache lines that a rank writes in one phase of a run.
class WrittenLines {
 public:
  WrittenLines(const BoundPlan& bound, const Schedule& schedule, const std::vector<int>& phase);
  bool contains(int buffer, std::int64_t line) const;

 private:
  std::map<int, std::vector<bool>> lines_;  ///< by buffer
};

/// When messages of values that seldom change are lent; see the functions of transports/environment.hpp of these names.
struct LendingLimits {
  std::size_t least_bytes = transport::lend_bytes_from_environment();
  std::size_t most_spread = transport::lend_spread_from_environment();
};

/// When a message of values that lie in buffers is better read there by its receiver than packed. Seldom written ones:
/// when it is long, the cache lines that it lies on hold few other bytes, and hardly any of them is one that this rank
/// writes meanwhile, since such lines go back and forth. Others: when the lines would have left its caches anyway, or
/// are so many, and full, that their way back from a near core costs no more than packing.
enum class BetterLent : std::uint8_t { never, when_seldom_written, always };
BetterLent better_lent(const Statement& statement, const StatementSchedule& s, const Message& m,
                       const WrittenLines& written, const LendingLimits& limits);

/// The sending end.
class OutgoingLoan {
 public:
  /// For a message whose values are elements as they lie in buffers; null for others, and for short ones.
  static std::unique_ptr<OutgoingLoan> of(const Statement& statement, const StatementSchedule& s, const Message& m,
                                          const LendingLimits& limits);

  /// Whether the receiver can read all the buffers where they lie now, and had better. To be called when they were
  /// bound; `judge(limits)` is asked for better_lent() once, when that matters.
  template <class Judge>
  void look_at(const std::vector<BoundMemory>& memory, const transport::Transport& transport, const Judge& judge) {
    taken_back_ = runs_to_pack_ = 0;
    is_possible_ = is_within_reach(memory, transport);
    if (!is_possible_) return;
    if (!better_) better_ = judge(limits_);
    is_possible_ = *better_ == BetterLent::always || (*better_ == BetterLent::when_seldom_written && !is_changing_);
  }
  bool is_possible() const { return is_possible_; }
  /// Whether to try it in this run.
  bool is_wanted() { return is_possible_ && (runs_to_pack_ == 0 || --runs_to_pack_ == 0); }
  /// Lends message `seq`; false where that cannot be done, or costs more than packing: where lines that are written
  /// often would have to come back from a far core.
  bool lend(transport::Channel& channel, std::uint64_t seq, const std::vector<BoundMemory>& memory);
  /// The message had to be taken back: where that goes on, it is packed at once for some runs.
  void note_taken_back() {
    if (++taken_back_ >= 2) runs_to_pack_ = 256;
  }
  void note_read() { taken_back_ = 0; }

  /// What tells the receiver which elements are meant; see describe().
  void set_description(const std::byte* description) { description_ = description; }
  bool is_described() const { return description_ != nullptr; }

 private:
  bool is_within_reach(const std::vector<BoundMemory>& memory, const transport::Transport& transport);

  LendingLimits limits_;
  std::optional<BetterLent> better_;       ///< nothing: was not asked yet
  std::vector<int> buffers_;               ///< of the parts, in their order
  std::vector<const std::byte*> regions_;  ///< of the buffers, and the description
  const std::byte* description_ = nullptr;
  bool is_possible_ = false;
  bool is_changing_ = false;  ///< some of the buffers are written often
  unsigned taken_back_ = 0, runs_to_pack_ = 0;
};

/// Writes down which elements the messages are of, in memory that receivers can read. The loans need it as long as they
/// are used. Throws TransportError where there is no such memory.
std::shared_ptr<std::byte> describe(const std::vector<std::pair<OutgoingLoan*, const Message*>>& loans,
                                    transport::Transport& transport);

/// The receiving end, once a message was lent.
class IncomingLoan {
 public:
  /// Makes the kernels for what is described. It is not usable where that fails.
  IncomingLoan(const BoundPlan& bound, const StatementSchedule& s, const Message& m, const std::byte* description,
               jit::Wait wait);

  const std::byte* description() const { return description_; }
  bool is_usable() const { return is_usable_; }
  void set_varying(const std::vector<ScalarValue>& parameters);
  /// Whether what is so long that it may go past the caches does.
  void go_past_caches(bool is_so) {
    for (ReadyCall& call : calls_)
      if (call.may_go_past_caches()) call.go_past_caches(is_so);
  }
  /// Applies the message from the regions it was lent in. Returns a call that met a zero divisor, or null.
  const ReadyCall* apply(std::span<const std::byte* const> regions, const std::vector<BoundMemory>& memory);

 private:
  void make_calls(const BoundPlan& bound, const StatementSchedule& s, const Message& m, jit::Wait wait);

  const std::byte* description_;
  bool is_usable_ = false;
  std::vector<ReadyCall> calls_;
  std::vector<std::size_t> regions_;  ///< by call: which of the lent ones
};

}  // namespace kplan
