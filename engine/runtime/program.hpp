#pragma once
// What a compiled plan does on one rank, ready to run: kernel calls with their code, channels, memory.

#include <memory>
#include <optional>
#include <vector>

#include "engine/lower/kernel_call.hpp"
#include "engine/runtime/native_reduction.hpp"
#include "jit/compiler.hpp"
#include "kplan/transport.hpp"

namespace kplan {

/// A kernel call that can be made again and again without allocating. Not copied once made: it points into itself.
class ReadyCall {
 public:
  ReadyCall(KernelCall call, jit::Kernel kernel);
  ReadyCall(KernelCall call, NativeReduction native);
  ReadyCall(ReadyCall&&) noexcept = default;
  ReadyCall& operator=(ReadyCall&&) noexcept = default;

  /// Runs it on the memory; `message` is the message's first byte. Returns 0, or 1 + the number of an iteration with a
  /// zero divisor.
  std::uint64_t operator()(const std::vector<BoundMemory>& memory, std::byte* message);
  void set_varying(const std::vector<ScalarValue>& parameters);
  const KernelCall& call() const { return call_; }
  bool is_compiled() const { return call_.spec < 0 || kernel_.is_compiled(); }

 private:
  KernelCall call_;
  jit::Kernel kernel_;
  std::optional<NativeReduction> native_;
  std::vector<std::byte*> bases_;
  std::vector<const std::int64_t*> lists_;
};

/// A message that this rank sends in every run.
struct OutgoingMessage {
  std::int64_t peer = 0, world_rank = 0;  ///< the receiver, in the statement's group and in the world
  std::size_t bytes = 0;
  std::unique_ptr<transport::Channel> channel;
  std::vector<ReadyCall> calls;
  /// The message lies in a buffer as it travels: it is sent from there.
  struct InPlace {
    int buffer = -1;
    std::int64_t offset_bytes = 0;
  };
  std::optional<InPlace> in_place;
};

/// A message that this rank receives in every run, or its local share.
struct IncomingMessage {
  std::int64_t peer = 0, world_rank = 0;  ///< the sender
  std::size_t bytes = 0;
  std::unique_ptr<transport::Channel> channel;  ///< null: local
  std::vector<ReadyCall> calls;
  bool is_local = false, is_done = false;
};

/// What one statement does in a run once its schedule is known.
struct StatementProgram {
  int statement = 0;
  std::vector<OutgoingMessage> outgoing;
  std::vector<IncomingMessage> incoming;  ///< ascending peer in the statement's group, the local share in its place
  std::vector<ReadyCall> staging;         ///< local share: values into `staged`, when it cannot be moved directly
  std::vector<std::byte> staged;
  bool is_in_sender_order = false;
};

struct Program {
  BoundPlan bound;
  Schedule schedule;
  std::vector<jit::KernelSpec> specs;
  std::vector<StatementProgram> statements;  ///< empty ones where the pattern varies
  NativeOperators operators;
};

/// Lowers a schedule and compiles its kernels; channels are opened by `open_channels`. Local. Throws CompilerError,
/// PlanError KP-B030 for an operator that is not registered.
Program make_program(BoundPlan bound, Schedule schedule, NativeOperators operators, jit::Wait wait);

/// The same for one statement of a varying pattern, for one run, which does not wait for kernels to be compiled.
StatementProgram make_statement_program(const BoundPlan& bound, const StatementSchedule& schedule,
                                        const NativeOperators& operators);

/// The kernel calls of one statement without their code, for listings.
struct LoweredStatement {
  struct Calls {
    std::int64_t peer = 0;
    std::vector<KernelCall> calls;
    std::optional<OutgoingMessage::InPlace> in_place;
  };
  std::vector<Calls> sends, receives;
  std::vector<KernelCall> staging, local;
};
std::vector<LoweredStatement> lower(const BoundPlan& bound, const Schedule& schedule, SpecTable& specs);

/// Collective: opens the channels of all statements.
void open_channels(Program& program, transport::Transport& transport, transport::Clock::time_point deadline);

}  // namespace kplan
