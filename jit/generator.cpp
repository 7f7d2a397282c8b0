// How it works: the plugin is opened once and stays. A turn at it is a flag and not a lock held, so that those who wait
// can be told apart: while someone urgent waits, the background does not take the next turn.
#include "jit/generator.hpp"

#include <chrono>
#include <new>

#include "jit/settings.hpp"
#include "kplan/error.hpp"

namespace kplan::jit {

/// The right to call the plugin.
class Generator::Turn {
 public:
  Turn(Generator& of, Urgency urgency) : of_(of) {
    std::unique_lock lock(of_.mutex_);
    const bool is_urgent = urgency == Urgency::somebody_waits;
    if (is_urgent) ++of_.urgent_;
    of_.changed_.wait(lock, [&] { return !of_.is_busy_ && (is_urgent || of_.urgent_ == 0); });
    if (is_urgent) --of_.urgent_;
    of_.is_busy_ = true;
  }
  ~Turn() {
    {
      std::lock_guard lock(of_.mutex_);
      of_.is_busy_ = false;
    }
    of_.changed_.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Generator& of_;
};

/// Never destroyed: the background may generate until the process ends.
Generator& Generator::instance() {
  static auto* const the = new Generator;
  return *the;
}

void Generator::open() {
  if (is_open_.load(std::memory_order_acquire)) return;
  const Turn turn(*this, Urgency::somebody_waits);
  if (is_open_.load(std::memory_order_relaxed)) return;
  if (settings().is_off) {
    plugin_.why_not = "KPLAN_JIT=off";
  } else {
    const auto begin = std::chrono::steady_clock::now();
    plugin_ = load_plugin();
    load_us_ = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  }
  is_open_.store(true, std::memory_order_release);
}

bool Generator::is_available() {
  open();
  return plugin_.generator != nullptr;
}

std::string Generator::why_not() {
  open();
  return plugin_.why_not;
}

std::vector<std::byte> Generator::generate(const Spec& spec, Urgency urgency, Statistics& times) {
  if (!is_available()) throw CompilerError("KP-C001", "no code generator: " + why_not());
  GeneratedCode code;
  PluginFailure failure;
  {
    const Turn turn(*this, urgency);
    if (!plugin_.generator->generate(&spec, &code, &failure)) throw CompilerError(failure.code, failure.message);
  }
  times.emission_us += static_cast<double>(code.emission) / 1e3;
  times.codegen_us += static_cast<double>(code.codegen) / 1e3;
  times.linking_us += static_cast<double>(code.linking) / 1e3;
  std::vector<std::byte> out(code.image, code.image + code.bytes);
  plugin_.generator->free(code.image);
  return out;
}

std::string Generator::listing(const Spec& spec, int what) {
  if (!is_available()) throw CompilerError("KP-C001", "no code generator: " + why_not());
  PluginFailure failure;
  const Turn turn(*this, Urgency::somebody_waits);
  char* text = plugin_.generator->listing(&spec, what, &failure);
  if (text == nullptr) throw CompilerError(failure.code, failure.message);
  std::string out = text;
  plugin_.generator->free(text);
  return out;
}

void Generator::before_fork() {
  std::unique_lock lock(mutex_);
  ++urgent_;
  changed_.wait(lock, [&] { return !is_busy_; });
  --urgent_;
  lock.release();  // held over the fork
}

void Generator::after_fork(bool is_child) {
  if (is_child) {  // those who waited are not here
    urgent_ = 0;
    new (&changed_) std::condition_variable;
  }
  mutex_.unlock();
  changed_.notify_all();  // who let the fork go first
}

}  // namespace kplan::jit
