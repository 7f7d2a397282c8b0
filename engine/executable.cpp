#include <fmt/format.h>

#include <algorithm>

#include "engine/analysis/expressions.hpp"
#include "engine/executable_state.hpp"
#include "engine/plan_cache.hpp"
#include "plans/diagnostic.hpp"

namespace kplan {

namespace {

/// Whether runs may need the contents of the fixed buffer.
bool is_read_in_runs(const Program& program, int buffer) {
  const PlanModel& plan = *program.bound.model;
  const auto divides_integers = [](const Expr& e) {
    return e.kind == ExprKind::operation && divides(e.operation) && is_integer(e.type);
  };
  return std::ranges::any_of(program.schedule.statements, [&](const StatementSchedule& schedule) {
    const Statement& s = plan.statements[static_cast<std::size_t>(schedule.statement)];
    // Zero divisors are told with their environment.
    return schedule.knowledge.is_varying ||
           std::ranges::any_of(touched_by(plan, s).reads, [&](int b) { return plan.storage_of(b) == buffer; }) ||
           std::ranges::any_of(s.reductions, [&](const Reduction& r) {
             return contains(*with_bindings(r.value, s), divides_integers);
           });
  });
}

}  // namespace

Executable::State::State(BoundValues v, Runner r) : values(std::move(v)), runner(std::move(r)) {
  owners.resize(plan().buffers.size());
  find_touched();
  for (std::size_t b = 0; b < plan().buffers.size(); ++b) {
    if (!values.contents[b] || is_read_in_runs(runner.program(), static_cast<int>(b))) continue;
    values.contents[b].reset();
    values.bound.state.contents[b] = runner.program().bound.state.contents[b] = nullptr;
  }
  reset();
}

std::size_t Executable::State::find_buffer(std::string_view name) const {
  const int b = plan().find_buffer(name);
  if (b >= 0 && plan().storage_of(b) == b) return static_cast<std::size_t>(b);
  std::vector<std::string> names;
  for (const Buffer& buffer : plan().buffers)
    if (!buffer.plane) names.push_back(buffer.name);
  throw PlanError("KP-B020",
                  fmt::format("plan {} has no buffer `{}`{}", plan().name, name, suggestion_or_list(name, names)));
}

void Executable::State::bind(std::size_t b, const Memory& given) {
  const Buffer& buffer = plan().buffers[b];
  const std::span<std::byte> memory = given.bytes;
  const Layout& layout = runner.program().bound.state.layouts[b];
  const std::size_t needed = static_cast<std::size_t>(layout.extent) * buffer.type.size_bytes;
  if (memory.size() != needed)
    throw PlanError(
        "KP-B022",
        fmt::format(
            "plan {}: buffer `{}` has {} elements of {} bytes on rank {}, {} bytes; memory of {} bytes was given",
            plan().name, buffer.name, layout.extent, buffer.type.size_bytes, runner.program().schedule.rank, needed,
            memory.size()));
  if (needed > 0 && memory.data() == nullptr)
    throw PlanError("KP-B022",
                    fmt::format("plan {}: buffer `{}` has {} elements on rank {}; memory at a null pointer was given",
                                plan().name, buffer.name, layout.extent, runner.program().schedule.rank));
  if (values.is_given[b])
    throw PlanError("KP-B027",
                    fmt::format("plan {}: buffer `{}` is fixed and its contents were given to compile; it is "
                                "not bound, and other contents are another compile",
                                plan().name, buffer.name));
  if (runner.is_started())
    throw PlanError("KP-B023", fmt::format("plan {}: buffer `{}` cannot be bound during a run; wait() first",
                                           plan().name, buffer.name));
  static std::byte nothing{};  // no address would mean that nothing is bound
  runner.bind(b, {memory.empty() ? &nothing : memory.data(), memory.size(), given.written == Written::seldom});
  owners[b] = given.owner;
  is_checked = false;
}

void Executable::State::find_touched() {
  const Program& program = runner.program();
  for (const StatementSchedule& s : program.schedule.statements) {
    const Statement& statement = plan().statements[static_cast<std::size_t>(s.statement)];
    if (s.knowledge.is_varying && takes_part(program.bound, statement)) {
      const Touched by_statement = touched_by(plan(), statement);
      for (const int b : by_statement.reads) touched.insert(plan().storage_of(b));
      for (const int b : by_statement.writes) written.insert(plan().storage_of(b));
    }
    for (const auto* messages : {&s.sends, &s.local_send})
      for (const Message& m : *messages)
        for (const MessagePart& part : m.parts)
          for (const Expr* e : s.values[static_cast<std::size_t>(part.reduction)].elements)
            touched.insert(plan().storage_of(e->id));
    for (const auto* messages : {&s.receives, &s.local_receive})
      for (const Message& m : *messages)
        for (const MessagePart& part : m.parts)
          written.insert(plan().storage_of(statement.reductions[static_cast<std::size_t>(part.reduction)].place->id));
  }
  touched.insert(written.begin(), written.end());
}

void Executable::State::check_bindings() {
  const Program& program = runner.program();
  const auto& memory = runner.memory();
  for (const int number : touched) {
    const auto b = static_cast<std::size_t>(number);
    if (!memory[b].base && program.bound.state.layouts[b].extent > 0)
      throw PlanError(
          "KP-B021",
          fmt::format("plan {}: buffer `{}` is not bound on rank {}; call bind(\"{}\", ...) before the first run",
                      plan().name, plan().buffers[b].name, program.schedule.rank, plan().buffers[b].name));
    if (!written.contains(number)) continue;
    for (const int other : touched) {
      const auto c = static_cast<std::size_t>(other);
      if (c == b) continue;
      if (memory[b].base < memory[c].base + memory[c].bytes && memory[c].base < memory[b].base + memory[b].bytes)
        throw PlanError("KP-B024", fmt::format("plan {}: buffers `{}` and `{}` are bound to memory that overlaps, "
                                               "and `{}` is written; declare them as one buffer",
                                               plan().name, plan().buffers[b].name, plan().buffers[c].name,
                                               plan().buffers[b].name));
    }
  }
  is_checked = true;
}

void Executable::State::reset() {
  Program& program = runner.program();
  program.bound.state.parameters = values.bound.state.parameters;
  runner.parameters_reset();
  for (std::size_t b = 0; b < plan().buffers.size(); ++b) {
    BoundMemory memory;
    if (values.contents[b])  // which are only read
      memory = {const_cast<std::byte*>(program.bound.state.contents[b]),
                static_cast<std::size_t>(program.bound.state.layouts[b].extent) * plan().buffers[b].type.size_bytes,
                /*is_seldom_written=*/true};
    runner.bind(b, memory);
    owners[b] = nullptr;
  }
  is_checked = false;
}

Executable::Executable(std::unique_ptr<State> state) : state_(std::move(state)) {}
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&& other) noexcept {
  if (this != &other) {
    PlanCache::give_back(std::move(state_));
    state_ = std::move(other.state_);
  }
  return *this;
}
Executable::~Executable() { PlanCache::give_back(std::move(state_)); }

void Executable::bind_memory(std::string_view name, Memory memory) {
  const std::size_t b = state_->find_buffer(name);
  const PlanModel& plan = state_->plan();
  const ElementType& type = plan.buffers[b].type;
  const bool is_of_type =
      memory.scalar ? !type.is_record() && type.scalar == *memory.scalar
                    : memory.record_bytes == 0 || (type.is_record() && type.size_bytes == memory.record_bytes);
  if (!is_of_type) {
    const auto records = [](std::size_t bytes) { return fmt::format("records of {} bytes", bytes); };
    throw PlanError("KP-B025",
                    fmt::format("plan {}: buffer `{}` holds {}, and memory of {} was given{}", plan.name, name,
                                type.is_record() ? records(type.size_bytes) : std::string(name_of(type.scalar)),
                                memory.scalar ? std::string(name_of(*memory.scalar)) : records(memory.record_bytes),
                                type.is_record() ? "; bind records of that size, or their bytes with bind_bytes" : ""));
  }
  if (memory.is_constant)
    for (const Statement& s : plan.statements)
      for (const Reduction& r : s.reductions)
        if (std::cmp_equal(plan.storage_of(r.place->id), b))
          throw PlanError("KP-B028", fmt::format("plan {}: buffer `{}` is written by statement {}, and constant memory "
                                                 "was given; bind memory that may be written",
                                                 plan.name, name, s.name));
  state_->bind(b, memory);
}

[[gnu::hot]] void Executable::set(std::string_view name, const Value& value) {
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
  state_->runner.parameter_set(parameter.is_uniform);
}

void Executable::start() {
  if (!state_->is_checked) state_->check_bindings();
  state_->runner.start();
}

void Executable::wait() { state_->runner.wait(); }

bool Executable::test() { return state_->runner.test(); }

[[gnu::hot]] void Executable::run() {
  if (!state_->is_checked) state_->check_bindings();
  state_->runner.run();
}

std::string Executable::schedule_json() const { return to_json(state_->runner.program().schedule, state_->plan()); }

const CompileTimes& Executable::compile_times() const { return state_->times; }

}  // namespace kplan
