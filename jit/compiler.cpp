// How it works: a map from a spec's key to what equal kernels share, held weakly, so that code goes with its last
// kernel, or a little later: what was made last is kept, for plans that come one after the other. Each entry is at one
// stage; whoever moves it to `making`, a waiting call or the background, makes the code of all that it moved as one
// batch, without the map's lock, and the others wait for the stage to change.
#include "jit/compiler.hpp"

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>

#include "jit/background.hpp"
#include "jit/code_maker.hpp"
#include "jit/settings.hpp"

namespace kplan::jit {
namespace {

using Stage = SharedCode::Stage;
using Codes = std::vector<std::shared_ptr<SharedCode>>;

/// Kernels become compiled in the background so many at a time.
constexpr std::size_t background_batch = 32;

}  // namespace

struct Compiler::State {
  std::mutex mutex;
  std::condition_variable changed;  ///< some stage
  std::unordered_map<std::string, std::weak_ptr<SharedCode>> cache;
  std::size_t sweep_at = 1024;
  std::deque<std::weak_ptr<SharedCode>> queue;
  std::array<std::shared_ptr<SharedCode>, 256>
      kept;  ///< the last that were compiled, in turn, though nobody holds them
  std::size_t next_kept = 0;
  Statistics statistics;
  CodeMaker maker;
  Background background{[this] { return work(); }};
  bool stops_at_exit = false;

  State() { install_fork_handlers(); }

  /// What the users of equal specs share, made if it is not there.
  template <class Code, class OneSpec>
  std::shared_ptr<Code> find_or_add(const OneSpec& spec) {
    std::string key = key_of(spec);
    std::weak_ptr<SharedCode>& known = cache[std::move(key)];
    if (const std::shared_ptr<SharedCode> code = known.lock()) {
      ++statistics.from_memory;
      return std::static_pointer_cast<Code>(code);
    }
    check(spec);
    const auto code = std::make_shared<Code>(spec);
    known = code;
    const bool is_too_long = spec.is_too_long();
    statistics.too_long += is_too_long;
    if (settings().is_off || is_too_long) code->stage = Stage::made;
    return code;
  }

  /// Forgets kernels that are gone, now and then.
  void sweep() {
    if (cache.size() < sweep_at) return;
    std::erase_if(cache, [](const auto& entry) { return entry.second.expired(); });
    sweep_at = 2 * cache.size() + 1024;
  }

  /// Makes the code of what is at stage `making`, and sets the stages; nothing is locked meanwhile. Returns the first
  /// failure.
  std::optional<CompilerError> make(const Codes& codes, Urgency urgency) {
    std::vector<const Spec*> specs;
    for (const auto& code : codes) specs.push_back(&code->spec);
    const bool may_drop = urgency == Urgency::background;
    const auto is_wanted = [&](std::size_t i) {
      return !may_drop || (!background.is_stopping() && codes[i].use_count() > 1);
    };
    Statistics spent;
    std::vector<MadeCode> made(codes.size());
    try {
      made = maker.make(specs, urgency, is_wanted, spent);
    } catch (const std::exception& error) {  // no memory: whoever waits must hear of it
      for (MadeCode& m : made) m.failure = CompilerError("KP-C004", std::string("while making code: ") + error.what());
    }
    std::optional<CompilerError> failure;
    std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      codes[i]->stage = made[i].failure ? Stage::failed : made[i].is_unwanted ? Stage::asked : Stage::made;
      if (made[i].code.function() != nullptr) {
        codes[i]->set_compiled(std::move(made[i].code));
        keep(codes[i]);
      }
      if (made[i].is_unwanted) drop(codes[i], spent);
      if (!made[i].failure) continue;
      ++spent.failed;
      spent.last_failure = made[i].failure->what();
      if (!failure) failure = made[i].failure;
    }
    statistics += spent;
    changed.notify_all();
    return failure;
  }

  void keep(const std::shared_ptr<SharedCode>& code) {
    kept[next_kept] = code;
    next_kept = (next_kept + 1) % kept.size();
  }

  /// What nobody wanted is dropped, unless somebody does by now.
  void drop(const std::shared_ptr<SharedCode>& code, Statistics& spent) {
    if (background.is_stopping() || code.use_count() == 1) {
      ++spent.dropped;
      return;
    }
    code->stage = Stage::queued;
    queue.push_back(code);
  }

  /// Takes the codes through `making`, or waits for who does. Errors: CompilerError.
  void wait_for(const Codes& codes) {
    std::unique_lock lock(mutex);
    for (;;) {
      Codes mine;
      mine.reserve(codes.size());
      bool is_made = true;
      for (const auto& code : codes) {
        is_made = is_made && code->stage == Stage::made;
        if (code->stage == Stage::made || code->stage == Stage::making) continue;
        code->stage = Stage::making;
        mine.push_back(code);
      }
      if (is_made) return;
      if (mine.empty()) {
        changed.wait(lock);
        continue;
      }
      lock.unlock();
      if (const auto failure = make(mine, Urgency::somebody_waits)) throw *failure;
      lock.lock();
    }
  }

  /// Hands what nobody works on to the background.
  void enqueue(const Codes& codes) {
    bool is_new = false;
    for (const auto& code : codes) {
      if (code->stage != Stage::asked) continue;
      code->stage = Stage::queued;
      queue.push_back(code);
      is_new = true;
    }
    if (!is_new) return;
    // Registered late, so that it is among the first things done at exit.
    if (!std::exchange(stops_at_exit, true)) std::atexit([] { instance().state_->background.stop(); });
    background.wake();
  }

  /// The background's work: one batch. False when the queue is empty.
  bool work() {
    Codes batch;
    {
      std::lock_guard lock(mutex);
      while (!queue.empty() && batch.size() < background_batch) {
        std::shared_ptr<SharedCode> code = queue.front().lock();
        queue.pop_front();
        if (code == nullptr) {
          ++statistics.dropped;
        } else if (code->stage == Stage::queued) {
          code->stage = Stage::making;
          batch.push_back(std::move(code));
        }
      }
    }
    if (batch.empty()) return false;
    make(batch, Urgency::background);
    return true;
  }

  // Around a fork nothing is held that the child would wait for, and no code is being written. In the child, what other
  // threads were making is asked for anew.
  static void install_fork_handlers() {
    Generator::instance(), CodeArena::instance();  // there before any thread that may be making them at a fork
    pthread_atfork(
        [] {
          State& state = *instance().state_;
          state.mutex.lock();
          state.background.before_fork();
          Generator::instance().before_fork();
          CodeArena::instance().before_fork();
        },
        [] { after_fork(false); }, [] { after_fork(true); });
  }

  static void after_fork(bool is_child) {
    State& state = *instance().state_;
    CodeArena::instance().after_fork();
    Generator::instance().after_fork(is_child);
    state.background.after_fork(is_child);
    if (is_child) {
      new (&state.changed) std::condition_variable;
      state.queue.clear();
      for (auto& [key, known] : state.cache) {
        const auto code = known.lock();
        if (code != nullptr && (code->stage == Stage::making || code->stage == Stage::queued))
          code->stage = Stage::asked;
      }
    }
    state.mutex.unlock();
  }
};

/// Never destroyed: kernels may outlive every static object.
Compiler& Compiler::instance() {
  static auto* const the = new Compiler;
  return *the;
}

Compiler::Compiler() : state_(std::make_unique<State>()) {}
Compiler::~Compiler() = default;

template <class Code, class Handle, class OneSpec>
std::vector<Handle> Compiler::compile_all(std::span<const OneSpec> specs, Wait wait) {
  Codes codes;
  std::vector<Handle> handles;
  codes.reserve(specs.size());
  handles.reserve(specs.size());
  const bool waits = wait == Wait::until_compiled || settings().always_waits;
  {
    std::lock_guard lock(state_->mutex);
    state_->statistics.asked += specs.size();
    for (const OneSpec& spec : specs) {
      std::shared_ptr<Code> code = state_->find_or_add<Code>(spec);
      codes.push_back(code);
      handles.push_back(Handle(std::move(code)));
    }
    state_->sweep();
    if (!waits) state_->enqueue(codes);
  }
  if (waits) state_->wait_for(codes);
  return handles;
}

std::vector<Kernel> Compiler::compile(std::span<const KernelSpec> specs, Wait wait) {
  return compile_all<KernelCode, Kernel>(specs, wait);
}

std::vector<RowKernel> Compiler::compile(std::span<const RowSpec> specs, Wait wait) {
  return compile_all<RowCode, RowKernel>(specs, wait);
}

std::string Compiler::listing(const Spec& spec, Listing what) {
  check(spec);
  return Generator::instance().listing(spec, what == Listing::ir ? 0 : 1);
}

bool Compiler::is_available() {
  return Generator::instance().is_available() && CodeArena::instance().why_not().empty();
}

std::string Compiler::why_not() {
  return Generator::instance().is_available() ? CodeArena::instance().why_not() : Generator::instance().why_not();
}

Statistics Compiler::statistics() {
  std::lock_guard lock(state_->mutex);
  Statistics out = state_->statistics;
  out.plugin_load_us = Generator::instance().load_us();
  return out;
}

}  // namespace kplan::jit
