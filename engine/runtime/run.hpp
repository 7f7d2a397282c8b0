#pragma once
// One run of a program: begin and finish, phase by phase.

#include <functional>

#include "engine/runtime/moving_planes.hpp"
#include "engine/runtime/run_trial.hpp"
#include "engine/runtime/uniform_check.hpp"
#include "engine/runtime/varying_statement.hpp"

namespace kplan {

class Runner;

/// An engine's runs that were started and are not waited for yet, and have more to send: in later phases, or where what
/// comes to a varying statement decides it. The transport moves them on while this rank waits for something else, for
/// another run or in a collective call, since their peers may be waiting for that.
class StartedRuns final : private transport::InFlight {
 public:
  explicit StartedRuns(std::shared_ptr<transport::Transport> transport) : transport_(std::move(transport)) {}
  StartedRuns(const StartedRuns&) = delete;
  StartedRuns& operator=(const StartedRuns&) = delete;

  void add(Runner& run);
  void remove(Runner& run);

 private:
  void move_on() override;
  template <class F>
  void remove_if(const F& is_to_go);

  std::shared_ptr<transport::Transport> transport_;
  std::vector<Runner*> runs_;  ///< the transport keeps moving them while there are some
  bool is_moving_ = false;     ///< a run that is moved moves the transport in turn
};

class Runner final : private FaultNotes {
 public:
  /// Collective where statements vary: opens their exchanges.
  Runner(Program program, std::shared_ptr<transport::Transport> transport, std::chrono::nanoseconds timeout,
         std::shared_ptr<StartedRuns> started_runs);
  Runner(Runner&&) noexcept = default;
  /// Breaks off a run that goes on.
  ~Runner();

  /// Not during a run.
  void bind(std::size_t buffer, BoundMemory memory) {
    memory_[buffer] = memory;
    are_bindings_new_ = true;
    may_be_short_ = false;
  }
  const std::vector<BoundMemory>& memory() const { return memory_; }
  Program& program() { return program_; }
  const Program& program() const { return program_; }
  /// A parameter was set by the program: on all ranks alike, if it `is_uniform`.
  void parameter_set(bool is_uniform) {
    are_parameters_new_ = true;
    if (!is_uniform) return;
    uniform_check_.note_set();
    are_uniform_values_new_ = true;
  }
  /// Parameters are at their first values again, which ranks have compared.
  void parameters_reset() {
    are_parameters_new_ = are_uniform_values_new_ = true;
    uniform_check_.forget_set();
  }
  bool is_started() const { return is_started_; }
  bool is_broken() const { return is_broken_; }

  void start() {
    require_transport();
    if (may_be_short_ && short_.size() == 1) return start_short();
    start(/*may_wait=*/false);
  }
  void wait() {
    if (!is_started_) return;
    require_transport();
    if (short_.size() == 1) return wait_short();
    wait_for_all();
  }
  /// Moves a started run on without waiting; whether it has ended.
  bool test();
  void run() {
    require_transport();
    if (may_be_short_) return run_short();
    start(/*may_wait=*/true);
    finish_run();
  }
  /// Takes what has come to a started run, and begins the next phases as far as that does not block. False where it has
  /// failed, which its wait() tells.
  bool move_on();

 private:
  /// One peer that is waited for, a world rank, and in which statements.
  struct Wait {
    int peer;
    std::vector<int> statements;
    std::string text;
  };
  /// What has come of short messages; `otherwise`: one is lent.
  enum class Came : std::uint8_t { all, in_part, otherwise };
  /// Throws TransportError KP-T008 where it has ended.
  void require_transport() {
    if (*has_transport_ended_) [[unlikely]]
      fail_without_transport();
  }
  [[noreturn]] void fail_without_transport();
  void start(bool may_wait);
  void wait_for_all();
  void take_news();
  std::vector<StatementProgram*> find_short();
  void run_short();
  void start_short();
  void wait_short();
  inline void begin_short();
  inline void send_short(StatementProgram& s);
  inline Came finish_short(StatementProgram& s);
  inline Came take_short(StatementProgram& s);
  inline void end_short();
  void leave_short(std::size_t phase, Came came);
  void ask_trials();
  void begin_trials();
  void take_memory_back() {
    if (!planes_.take_back(memory_)) [[likely]]
      return;
    are_parameters_new_ = are_bindings_new_ = true;
    may_be_short_ = false;
  }
  void go_on();
  bool finish_run();
  bool finish_phases();
  bool end_comparison();
  void begin(const std::vector<int>& phase);
  bool finish(const std::vector<int>& phase);
  void stop_going_on() {
    if (goes_on_) [[unlikely]]
      started_runs_->remove(*this);
    goes_on_ = false;
  }
  bool can_begin(const std::vector<int>& phase) const;
  void begin_statement(StatementProgram& s);
  void begin_collective(StatementProgram& s);
  static std::vector<Wait> not_come(const StatementProgram& s);
  bool finish_statement(StatementProgram& s);
  bool send(OutgoingMessage& m);
  std::byte* wait_for_slot(OutgoingMessage& m);
  bool lend(OutgoingMessage& m);
  bool lend_to_fetch(OutgoingMessage& m);
  void note_lent(OutgoingMessage& m);
  void pack_ahead(OutgoingMessage& m, std::uint64_t seq, std::byte* slot);
  void pack_for_far(OutgoingMessage& m, std::byte* slot, transport::Stores stores);
  void look_at_bindings();
  void tell_places();
  /// Moves what is on its way to receivers as far as it goes now.
  void push() {
    if (!under_way_.empty()) [[unlikely]]
      push_pieces();
    if (!lent_.empty()) [[unlikely]]
      collect_loans();
  }
  void push_pieces();
  const ReadyCall* send_rest(OutgoingMessage& m);
  void collect_loans();
  bool finds_difference();
  void note_difference(const std::exception_ptr& difference);
  void break_off();
  [[noreturn]] void break_off_and_rethrow();
  bool take_arrived(StatementProgram& s);
  bool take(StatementProgram& s, IncomingMessage& m);
  bool take_piece(IncomingMessage& m);
  /// How a message that may go in pieces has come.
  enum class Way : std::uint8_t { fetched, in_pieces, whole };
  void note_way(IncomingMessage& m, Way way);
  void apply_own(IncomingMessage& m);
  void put_values(const OutgoingMessage& m, std::byte* message);
  void compare_values(const IncomingMessage& m, const std::byte* message);
  void tell_before_failing();
  void wait_for_history();
  void tell_due();
  bool end_history();
  bool take_lent(IncomingMessage& m, std::span<const std::byte* const> regions);
  bool take_fetched(IncomingMessage& m);
  void apply(IncomingMessage& m, const std::byte* message);
  void apply_in_parts(StatementProgram& s, IncomingMessage& m, std::span<const std::byte> come);
  void take_ahead(StatementProgram& s, IncomingMessage& m);
  void note_zero_divisor(const ReadyCall& call, bool is_value) override;
  RunContext context() { return {program_.bound, memory_, program_.operators, *this}; }
  static Wait coming(const IncomingMessage& m);
  static Wait taking(const OutgoingMessage& m);
  /// Waits for peers, unless the run is only tested: `ready` says whether they have all done it, `waiting` lists those
  /// that have not. Whether they have.
  template <class IsReady, class WhoWaits>
  bool wait_until(const IsReady& ready, const WhoWaits& waiting) {
    push();
    if (ready()) [[likely]]
      return true;
    return wait_long(std::cref(ready), std::cref(waiting));
  }
  using Ready = std::function<bool()>;
  using Waiting = std::function<std::vector<Wait>()>;
  bool wait_long(const Ready& ready, const Waiting& waiting);
  bool look_for_lost(const Ready& ready, const Waiting& waiting, transport::Clock::time_point deadline);
  std::string text_of(const std::vector<Wait>& waits) const;
  static std::vector<Wait> taking_part(int statement, const std::vector<int>& ranks);
  [[noreturn]] void fail(const char* code, const std::string& what, const char* hint = "");

  Program program_;
  std::vector<std::unique_ptr<VaryingStatement>> varying_;  ///< by statement; null where the pattern is fixed
  std::shared_ptr<transport::Transport> transport_;
  const bool* has_transport_ended_;  ///< the transport's
  std::chrono::nanoseconds timeout_;
  std::shared_ptr<StartedRuns> started_runs_;
  UniformCheck uniform_check_;
  bool are_uniform_values_new_ = false;  ///< since the last run
  bool are_values_different_ = false;
  bool can_settle_ = false;          ///< some statement's patterns
  bool letters_carry_hash_ = false;  ///< letters of a varying statement do, in every run
  std::span<const int> compared_;    ///< ranks with which the next varying statement compares uniform values
  std::vector<std::size_t> varying_buffers_;
  bool wait_until_taken(const std::vector<OutgoingMessage*>& messages);
  std::vector<OutgoingMessage*> under_way_;  ///< messages that are being sent in pieces
  std::vector<OutgoingMessage*> lent_;       ///< messages that their receivers have not read yet
  bool may_wait_ = false;                    ///< for receivers, before the messages of this phase are sent
  bool has_moved_ = false;                   ///< something, since it was last looked at
  RunTrials trials_;
  std::vector<ReadyCall*> long_targets_;    ///< calls that may write past the caches
  bool do_targets_go_past_caches_ = false;  ///< as those were told last
  bool are_places_told_ = false;            ///< to the channels of messages in place, since buffers were bound
  bool are_moving_places_told_ = false;     ///< those of planes, since parameters were set
  std::vector<std::byte> fetched_;          ///< a part of a message
  std::vector<std::byte> made_;             ///< a whole message, before it is copied to a slot that is far
  std::size_t phase_ = 0;                   ///< of the run that is started
  std::size_t finished_ = 0;                ///< so many statements of the phase have ended
  bool may_go_on_ = false;                  ///< while others are waited for, once it is started
  bool goes_on_ = false;
  // What short runs read.
  std::vector<StatementProgram*> short_;  ///< what they do, by phase; empty: no run is short
  bool may_be_short_ = false;             ///< the next run: buffers lie where they lay
  bool carries_values_ = false;           ///< uniform ones are told and compared: see UniformHistory
  bool is_tested_ = false;                ///< nothing waits for peers
  bool is_started_ = false, are_parameters_new_ = false, are_bindings_new_ = true, is_broken_ = false;
  std::uint64_t run_ = 0;
  MovingPlanes planes_;
  std::vector<BoundMemory> memory_;
  std::exception_ptr failure_;  ///< the first of this run, thrown when it has ended on all channels
};

}  // namespace kplan
