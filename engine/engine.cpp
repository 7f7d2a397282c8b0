#include "kplan/engine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/agreement.hpp"
#include "engine/environment.hpp"
#include "engine/executable_state.hpp"
#include "engine/plan_cache.hpp"
#include "engine/schedule/two_steps.hpp"
#include "transports/environment.hpp"

namespace kplan {

using transport::Clock;

/// Notes how long the steps of a compilation take.
class StepClock {
 public:
  explicit StepClock(CompileTimes& times) : times_(times) {}
  void done(const char* step) {
    const Clock::time_point now = Clock::now();
    times_.emplace_back(step, std::chrono::duration<double, std::micro>(now - begin_).count());
    begin_ = now;
  }

 private:
  CompileTimes& times_;
  Clock::time_point begin_ = Clock::now();
};

struct Engine::State {
  std::shared_ptr<transport::Transport> transport;
  std::chrono::nanoseconds timeout;
  std::shared_ptr<PlanCache> cache = std::make_shared<PlanCache>();
  std::shared_ptr<StartedRuns> started_runs;
  LongMessages long_messages;
  TwoStepLimits two_steps;
  transport::NativeCollectives native = transport::native_collectives_from_environment();
  NativeOperators operators;

  Clock::time_point deadline() const { return Clock::now() + timeout; }
  bool wants_native(const StatementSchedule& s) const;
  bool shares_memory() const;
  void choose(const PlanModel& plan, const StatementSchedule& s, CollectiveCandidates& c) const;
  Schedule make_schedule(const BoundPlan& bound, const std::vector<Knowledge>& knowledge, std::exception_ptr& failure);
};

/// Whether the transport's own operation is to be used for a statement that is one: where it is possible and, unless it
/// is asked for, pays. Between ranks that share memory messages are always faster; elsewhere operations are where there
/// are many ranks, since each sends few messages.
bool Engine::State::wants_native(const StatementSchedule& s) const {
  if (native == transport::NativeCollectives::off || !transport->has_collectives()) return false;
  std::int64_t bytes = 0;
  for (const auto* messages : {&s.sends, &s.receives})
    for (const Message& m : *messages) bytes += (m.bytes + 63) / 64 * 64;
  if (bytes >= std::int64_t{1} << 31) return false;
  if (native == transport::NativeCollectives::wherever_possible) return true;
  constexpr int fewest_ranks = 64;
  return transport->size() >= fewest_ranks && !shares_memory();
}

/// Whether this rank shares memory with another.
bool Engine::State::shares_memory() const {
  for (int peer = 0; peer < transport->size(); ++peer)
    if (peer != transport->rank() && transport->lends_memory(peer)) return true;
  return false;
}

/// How this rank would do a statement that may be an operation of all ranks.
void Engine::State::choose(const PlanModel& plan, const StatementSchedule& s, CollectiveCandidates& c) const {
  c.wants_native = wants_native(s);
  TwoStepLimits limits = two_steps;
  limits.serves_two_ranks = s.size == 2 && !shares_memory();
  c.wants_two_steps = can_go_in_two_steps(plan.statements[static_cast<std::size_t>(s.statement)], s, limits);
}

/// Collective where only one end of messages knows them: tells the other. What goes wrong here is kept for the
/// agreement that follows.
Schedule Engine::State::make_schedule(const BoundPlan& bound, const std::vector<Knowledge>& knowledge,
                                      std::exception_ptr& failure) {
  std::vector<StatementDraft> drafts;
  const auto letters = std::make_shared<std::map<std::int64_t, Unfilled<std::byte>>>();
  try {
    drafts = draft_schedule(bound, knowledge);
    *letters = letters_of(drafts);
  } catch (const std::exception&) {
    failure = std::current_exception();
    letters->clear();
  }
  const auto tells = [](const Knowledge& k) { return is_told(k) && !k.is_varying; };
  std::vector<std::pair<std::int64_t, std::span<const std::byte>>> told;
  std::unique_ptr<transport::SparseExchange> discovery;
  if (std::ranges::any_of(knowledge, tells)) {
    discovery = transport->open_exchange(deadline(), transport::Use::set_up);
    std::vector<transport::OutgoingLetter> outgoing;
    for (const auto& [to, bytes] : *letters) outgoing.push_back({static_cast<int>(to), bytes});
    discovery->keep(letters);
    discovery->begin(outgoing);
    transport::complete(*transport, *discovery, deadline(), "compiling a plan");
    for (const transport::ReceivedLetter& letter : discovery->received()) told.emplace_back(letter.from, letter.bytes);
  }
  if (failure) return {};
  try {
    return finish_schedule(bound, std::move(drafts), told);
  } catch (const std::exception&) {
    failure = std::current_exception();
    return {};
  }
}

Engine::Engine(std::shared_ptr<transport::Transport> transport) : state_(std::make_unique<State>()) {
  if (!transport)
    throw PlanError("KP-E009", "an engine needs a transport, and none was given; make one, with mpi_world() say");
  check_environment();
  state_->timeout = transport::timeout_from_environment();
  state_->transport = std::move(transport);
  state_->started_runs = std::make_shared<StartedRuns>(state_->transport);
}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

int Engine::rank() const { return state_->transport->rank(); }
int Engine::size() const { return state_->transport->size(); }

std::shared_ptr<std::byte> Engine::allocate_bytes(std::size_t bytes) { return state_->transport->allocate(bytes); }

void Engine::register_operator(std::string name, NativeOperator op) {
  if (!op)
    throw PlanError("KP-B031",
                    fmt::format("operator `{}` is an empty function; register one that can be called", name));
  state_->cache->forget(name);
  state_->operators[std::move(name)] = std::make_shared<const NativeOperator>(std::move(op));
}

Executable Engine::compile(const Plan& plan, const Values& values, Code code) {
  const jit::Wait wait = code == Code::when_ready ? jit::Wait::not_at_all : jit::Wait::until_compiled;
  CompileTimes times;
  StepClock clock(times);
  transport::Transport& transport = *state_->transport;
  const std::string key = PlanCache::key_of(plan, values, code);
  PlanCache::Found found = state_->cache->find(transport, key, state_->deadline());
  clock.done("look up");
  if (found.idle) {
    found.idle->times = std::move(times);
    return Executable(std::move(found.idle));
  }
  BoundValues bound;
  std::vector<Place> places;
  std::exception_ptr failure;
  try {
    // Alias of the plan's model that keeps it alive: copies of a plan share it.
    const auto holder = std::make_shared<const Plan>(plan);
    bound = bind_values({holder, &holder->model()}, values, transport.rank(), transport.size());
    places = places_of(bound.bound);
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  clock.done("bind values");
  // With the same meaning as the plan's own: records moved whole, reductions divided.
  std::shared_ptr<const PlanModel>& model = bound.bound.model;
  std::optional<Program> program;
  const auto make_kernels = [&](Schedule schedule) {
    program.reset();
    try {
      if (!failure) program.emplace(make_program(bound.bound, std::move(schedule), state_->operators, wait));
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
  };
  const auto whole = [&] { return program ? taken_whole(*program, transport) : std::vector<TakenWhole>(); };
  const auto agree_on_these_kernels = [&] {
    agree_on_kernels(transport, program ? &program->schedule : nullptr, whole(), failure, state_->deadline());
  };
  if (found.alike) {
    const Program& known = found.alike->runner.program();
    bound.bound.groups = known.bound.groups;
    model = known.bound.model;
    make_kernels(known.schedule);
    agree_on_these_kernels();
    clock.done("kernels");
  } else {
    const auto all_places = agree(transport, failure ? std::vector<Fact>{} : uniform_facts(bound.bound, plan.digest()),
                                  places, failure, state_->deadline());
    clock.done("agree on values");
    form_groups(bound.bound, all_places);
    const std::vector<Knowledge> knowledge = infer_knowledge(*model);
    Schedule schedule = state_->make_schedule(bound.bound, knowledge, failure);
    clock.done("analysis and schedule");
    make_kernels(std::move(schedule));
    clock.done("kernels");
    agree_on_messages(
        transport, program ? &program->schedule : nullptr, *model, knowledge,
        [&](const StatementSchedule& s, CollectiveCandidates& c) { state_->choose(*model, s, c); }, whole(), failure,
        state_->deadline());
    if (has_two_steps(program->schedule)) {
      Divided divided = divide(model, program->schedule);
      model = std::move(divided.model);
      make_kernels(std::move(divided.schedule));
      agree_on_these_kernels();
    }
    clock.done("agree on messages");
  }
  open_channels(*program, state_->long_messages, transport, state_->deadline());
  auto state = std::make_unique<Executable::State>(
      std::move(bound), Runner(std::move(*program), state_->transport, state_->timeout, state_->started_runs));
  clock.done("open channels");
  state_->cache->add(state_->cache, key, plan, *state);
  state->times = std::move(times);
  return Executable(std::move(state));
}

}  // namespace kplan
