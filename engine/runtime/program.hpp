#pragma once
// What a compiled plan does on one rank, ready to run: kernel calls with their code, channels, memory.

#include <memory>
#include <optional>
#include <vector>

#include "engine/runtime/enclosed.hpp"
#include "engine/runtime/loans.hpp"
#include "engine/runtime/pieces.hpp"
#include "engine/runtime/placed_ways.hpp"
#include "engine/runtime/placement.hpp"
#include "engine/runtime/row_statement.hpp"
#include "engine/runtime/uniform_history.hpp"
#include "transports/environment.hpp"

namespace kplan {

/// Where a whole message lies in one buffer as it travels.
struct InPlace {
  int buffer = -1;
  std::int64_t offset_bytes = 0;
};

/// A message that this rank sends in every run. What short runs read comes first, in one or two cache lines.
struct OutgoingMessage {
  std::unique_ptr<transport::Channel> channel;
  std::uint64_t next = 0;  ///< number of the next message on `channel`
  std::vector<ReadyCall> calls;
  std::size_t bytes = 0;
  std::size_t values_bytes = 0;     ///< its last, which are the uniform values of this rank
  bool ends_when_sent = false;      ///< the run does not end before the message is sent
  std::optional<InPlace> in_place;  ///< it is sent from there

  int statement = 0;                        ///< whose it is; of several the first
  std::int64_t peer = 0, world_rank = 0;    ///< the receiver, in the statement's group and in the world
  bool is_of_several = false;               ///< statements, which share it
  std::unique_ptr<Placement> fetched_from;  ///< where its receiver may fetch it instead; null: nowhere
  std::unique_ptr<OutgoingPieces> pieces;   ///< null: always sent whole, or carried
  /// Messages of the statement that are the same as this one, for other ranks: its pieces reach them, too.
  std::vector<OutgoingMessage*> carried;
  bool is_carried = false;                ///< by the pieces of another message, when that goes in pieces
  std::unique_ptr<OutgoingLoan> loan;     ///< null: never lent
  bool may_be_taken_back = false;         ///< what lies in place is put instead when nobody comes for it
  unsigned vain_looks = 0;                ///< whether the receiver has read what was lent
  std::unique_ptr<Placement> placement;   ///< null: always packed, or lies in place
  bool may_be_far = false;                ///< its slots may be far: see Channel::best_stores
  std::size_t ahead_bytes = 0;            ///< that go ahead of the rest at a time; 0: it goes as a whole
  std::unique_ptr<MessageCursor> cursor;  ///< packs it some bytes at a time then; null: it is made as a whole
};

/// A message that this rank receives in every run, or its local share. What short runs read comes first.
struct IncomingMessage {
  std::unique_ptr<transport::Channel> channel;  ///< null: local
  std::uint64_t next = 0;
  std::vector<ReadyCall> calls;
  std::size_t bytes = 0;
  std::size_t values_bytes = 0;  ///< its last, which are the uniform values of the sender
  bool is_local = false, is_done = false;
  bool is_in_sender_order = false;  ///< it is applied after those of lower ranks that are, too

  int statement = 0;                      ///< whose it is; of several the first
  std::int64_t peer = 0, world_rank = 0;  ///< the sender
  bool is_of_several = false;             ///< statements, which share it
  /// This rank's own share, where `calls` apply it too, before the message or after it: for messages that they do not
  /// unpack. There is no local share then.
  std::vector<ReadyCall> own;
  bool is_own_first = false;
  std::vector<ReadyCall> staging;  ///< local: values into `staged`, when they cannot be moved directly
  std::vector<std::byte> staged;
  std::unique_ptr<IncomingPieces> pieces;  ///< null: always comes whole
  bool comes_whole = false;                ///< in this run, though it has pieces
  bool was_fetched = false;                ///< in some run
  std::unique_ptr<IncomingLoan> loan;      ///< null: was not lent yet
  std::unique_ptr<Placement> fetched_to;   ///< where it goes as it is fetched; null: it is unpacked then, too
  std::unique_ptr<Placement> placement;    ///< null: always unpacked
  std::unique_ptr<MessageCursor> cursor;   ///< unpacks it `part_bytes` at a time; null: as a whole
  std::size_t part_bytes = 0;
  bool may_come_ahead = false;  ///< some of it, before the rest
  std::size_t taken = 0;        ///< bytes of it that are unpacked, in this run
};

/// What one statement does in a run once its schedule is known, or several of a phase do together.
struct StatementProgram {
  int statement = 0;  ///< of several the first
  std::vector<OutgoingMessage> outgoing;
  std::vector<IncomingMessage> incoming;              ///< in the order of senders, local shares in their place
  std::unique_ptr<transport::Collective> collective;  ///< what carries all messages; null: channels do
  std::unique_ptr<RowStatement> rows;                 ///< of a varying pattern that goes by rows
  Enclosed enclosed;                                  ///< what letters of a varying statement carry of others

  /// Fills varying parameters in.
  void set_varying(const std::vector<ScalarValue>& parameters);
};

struct Program {
  BoundPlan bound;
  Schedule schedule;
  std::vector<jit::KernelSpec> specs;
  jit::Wait wait_for_code = jit::Wait::not_at_all;
  std::vector<std::shared_ptr<std::byte>> descriptions;  ///< of messages that can be lent, for their receivers
  /// By statement. Empty, but for rows and what letters carry, where the pattern varies, and where another one does
  /// what it does.
  std::vector<StatementProgram> statements;
  std::vector<std::vector<int>> phases;  ///< the statements that run together, without those that others do
  NativeOperators operators;
  /// Null where no uniform parameters vary, or some patterns do, or there is one rank.
  std::unique_ptr<UniformHistory> uniform_history;
  PlacedWays placed_ways;
};

/// Lowers a schedule and compiles its kernels; channels are opened by `open_channels`. Local. Throws CompilerError,
/// PlanError KP-B030 for an operator that is not registered.
Program make_program(BoundPlan bound, Schedule schedule, NativeOperators operators, jit::Wait wait);

/// What of a varying statement's program later runs use again: the whole, or its kernels, for another pattern.
enum class Reuse : std::uint8_t { program, kernels };
/// The same for one statement of a varying pattern, which does not wait for kernels to be compiled.
StatementProgram make_statement_program(const BoundPlan& bound, const StatementSchedule& schedule,
                                        const NativeOperators& operators, Reuse reuse);

/// The kernel calls of one statement without their code, for listings.
struct LoweredStatement {
  struct Calls {
    std::int64_t peer = 0;
    std::vector<KernelCall> calls;
    std::optional<InPlace> in_place;
    std::vector<KernelCall> own;  ///< received: the local share, where `calls` do it too
    bool is_own_first = false;
  };
  std::vector<Calls> sends, receives;
  std::vector<KernelCall> staging, local;
};
std::vector<LoweredStatement> lower(const BoundPlan& bound, const Schedule& schedule, SpecTable& specs);

/// How long messages move.
struct LongMessages {
  LendingLimits lending;
  PlacingLimits placing;
  std::size_t least_fetched_block_bytes = transport::fetch_block_bytes_from_environment();
  /// Unpacked at a time while others move; 0: all.
  std::size_t part_bytes = transport::piece_bytes_from_environment();
};

/// The long messages that this rank cannot unpack piece by piece.
std::vector<TakenWhole> taken_whole(const Program& program, const transport::Transport& transport);

/// Collective: opens the channels of all statements, of which those of a phase become one.
void open_channels(Program& program, const LongMessages& limits, transport::Transport& transport,
                   transport::Clock::time_point deadline);

}  // namespace kplan
