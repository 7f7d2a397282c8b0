#include "kplan/engine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/agreement.hpp"
#include "engine/bind.hpp"
#include "engine/runtime/run.hpp"
#include "plans/diagnostic.hpp"

namespace kplan {

using transport::Clock;

struct Executable::State {
  BoundValues values;  ///< keeps the contents of fixed buffers
  Runner runner;
  bool is_checked = false;  ///< bindings are complete and do not overlap

  const PlanModel& plan() { return *runner.program().bound.model; }

  std::size_t find_buffer(std::string_view name) {
    const int b = plan().find_buffer(name);
    if (b >= 0) return static_cast<std::size_t>(b);
    std::vector<std::string> names;
    for (const Buffer& buffer : plan().buffers) names.push_back(buffer.name);
    throw PlanError("KP-B020", fmt::format("plan {} has no buffer `{}`{}", plan().name, name, suggestion(name, names)));
  }

  void bind(std::size_t b, std::byte* memory, std::size_t bytes) {
    const Buffer& buffer = plan().buffers[b];
    const Layout& layout = runner.program().bound.state.layouts[b];
    const std::size_t needed = static_cast<std::size_t>(layout.extent) * buffer.type.size_bytes;
    if (bytes != needed)
      throw PlanError(
          "KP-B022",
          fmt::format(
              "plan {}: buffer `{}` has {} elements of {} bytes on rank {}, {} bytes; memory of {} bytes was given",
              plan().name, buffer.name, layout.extent, buffer.type.size_bytes, runner.program().schedule.rank, needed,
              bytes));
    if (runner.is_started())
      throw PlanError("KP-B023", fmt::format("plan {}: buffer `{}` cannot be bound during a run; wait() first",
                                             plan().name, buffer.name));
    runner.memory()[b] = {memory, bytes};
    is_checked = false;
  }

  /// Every buffer that is touched is bound, and what is written overlaps nothing.
  void check_bindings() {
    std::vector<bool> is_read(plan().buffers.size()), is_written(plan().buffers.size());
    const Program& program = runner.program();
    for (const StatementSchedule& s : program.schedule.statements) {
      const Statement& statement = plan().statements[static_cast<std::size_t>(s.statement)];
      const auto mark = [&](const std::vector<Message>& messages, bool sends) {
        for (const Message& m : messages)
          for (const Transfer& t : m.transfers) {
            const auto k = static_cast<std::size_t>(t.reduction);
            if (!sends) is_written[static_cast<std::size_t>(statement.reductions[k].place->id)] = true;
            else
              for (const Expr* e : s.values[k].elements) is_read[static_cast<std::size_t>(e->id)] = true;
          }
      };
      mark(s.sends, true);
      mark(s.local_send, true);
      mark(s.receives, false);
      mark(s.local_receive, false);
    }
    const auto& memory = runner.memory();
    for (std::size_t b = 0; b < memory.size(); ++b) {
      if (!is_read[b] && !is_written[b]) continue;
      if (!memory[b].base && program.bound.state.layouts[b].extent > 0)
        throw PlanError(
            "KP-B021",
            fmt::format("plan {}: buffer `{}` is not bound on rank {}; call bind(\"{}\", ...) before the first run",
                        plan().name, plan().buffers[b].name, program.schedule.rank, plan().buffers[b].name));
      for (std::size_t c = 0; c < memory.size(); ++c) {
        if (c == b || !is_written[b] || !(is_read[c] || is_written[c])) continue;
        if (memory[b].base < memory[c].base + memory[c].bytes && memory[c].base < memory[b].base + memory[b].bytes)
          throw PlanError("KP-B024", fmt::format("plan {}: buffers `{}` and `{}` are bound to memory that overlaps, "
                                                 "and `{}` is written; declare them as one buffer",
                                                 plan().name, plan().buffers[b].name, plan().buffers[c].name,
                                                 plan().buffers[b].name));
      }
    }
    is_checked = true;
  }
};

Executable::Executable(std::unique_ptr<State> state) : state_(std::move(state)) {}
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;
Executable::~Executable() = default;

void Executable::bind_memory(std::string_view name, Scalar type, std::byte* memory, std::size_t bytes) {
  const std::size_t b = state_->find_buffer(name);
  const Buffer& buffer = state_->plan().buffers[b];
  if (buffer.type.is_record() || buffer.type.scalar != type)
    throw PlanError(
        "KP-B025", fmt::format("plan {}: buffer `{}` holds {}, and memory of {} was given{}", state_->plan().name, name,
                               buffer.type.is_record() ? "records" : name_of(buffer.type.scalar), name_of(type),
                               buffer.type.is_record() ? "; bind records with bind_bytes" : ""));
  state_->bind(b, memory, bytes);
}

void Executable::bind_bytes(std::string_view name, std::span<std::byte> memory) {
  state_->bind(state_->find_buffer(name), memory.data(), memory.size());
}

void Executable::set(std::string_view name, const Value& value) {
  const PlanModel& plan = state_->plan();
  const int p = plan.find_parameter(name);
  if (p < 0) {
    std::vector<std::string> names;
    for (const Parameter& x : plan.parameters) names.push_back(x.name);
    throw PlanError("KP-B011",
                    fmt::format("plan {} has no parameter `{}`{}", plan.name, name, suggestion(name, names)));
  }
  const Parameter& parameter = plan.parameters[static_cast<std::size_t>(p)];
  if (!parameter.is_varying)
    throw PlanError(
        "KP-B026",
        fmt::format("plan {}: parameter `{}` is fixed; compile the plan anew, or declare it \"time\": \"varying\"",
                    plan.name, name));
  if (state_->runner.is_started())
    throw PlanError("KP-B023",
                    fmt::format("plan {}: parameter `{}` cannot be set during a run; wait() first", plan.name, name));
  state_->runner.program().bound.state.parameters[static_cast<std::size_t>(p)] =
      scalar_value(value, parameter.type, plan.name, parameter.name);
  state_->runner.parameters_changed();
}

void Executable::start() {
  if (!state_->is_checked) state_->check_bindings();
  state_->runner.start();
}

void Executable::wait() { state_->runner.wait(); }

std::string Executable::schedule_json() const { return to_json(state_->runner.program().schedule, state_->plan()); }

struct Engine::State {
  std::shared_ptr<transport::Transport> transport;
  std::chrono::nanoseconds timeout;
};

Engine::Engine(std::shared_ptr<transport::Transport> transport) : state_(std::make_unique<State>()) {
  state_->timeout = transport::timeout_from_environment();
  state_->transport = std::move(transport);
}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

int Engine::rank() const { return state_->transport->rank(); }
int Engine::size() const { return state_->transport->size(); }

Executable Engine::compile(const Plan& plan, const Values& values) {
  transport::Transport& transport = *state_->transport;
  const auto deadline = [&] { return Clock::now() + state_->timeout; };
  // Alias of the plan's model that keeps it alive: copies of a plan share it.
  const auto holder = std::make_shared<const Plan>(plan);
  const std::shared_ptr<const PlanModel> model(holder, &holder->model());
  BoundValues bound;
  std::exception_ptr failure;
  try {
    bound = bind_values(model, values, transport.rank(), transport.size());
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  agree(transport, failure ? std::vector<Fact>{} : uniform_facts(bound.bound, plan.digest()), failure, deadline());
  std::optional<Program> program;
  try {
    program.emplace(make_program(bound.bound, build_schedule(bound.bound)));
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  agree_on_messages(transport, program ? &program->schedule : nullptr, *model, failure, deadline());
  open_channels(*program, transport, deadline());
  auto state = std::make_unique<Executable::State>(
      Executable::State{std::move(bound), Runner(std::move(*program), state_->transport, state_->timeout)});
  for (std::size_t b = 0; b < model->buffers.size(); ++b)
    if (auto& contents = state->values.contents[b]; !contents.empty())
      state->runner.memory()[b] = {contents.data(),
                                   static_cast<std::size_t>(state->runner.program().bound.state.layouts[b].extent) *
                                       model->buffers[b].type.size_bytes};
  return Executable(std::move(state));
}

}  // namespace kplan
