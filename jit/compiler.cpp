// How it works: a map from a spec's key to the live code made for it, held weakly, so that the code goes with its
// last kernel. A hit takes the map's lock only. Misses take the generator's lock first and look again, so that
// of several threads with the same spec one compiles it; all misses of one call become one batch.
#include "jit/compiler.hpp"

#include <mutex>
#include <unordered_map>

#include "jit/plugin_loader.hpp"
#include "kplan/error.hpp"

namespace kplan::jit {
namespace {

/// The plugin, opened on the first use, and the lock that lets one thread at a time into it.
struct Generator {
  std::mutex mutex;
  std::once_flag opened;
  LoadedPlugin plugin;

  const CodeGenerator* get() {
    std::call_once(opened, [this] { plugin = load_plugin(); });
    return plugin.generator;
  }
};

/// Never destroyed: kernels may outlive every static object.
Generator& generator() {
  static auto* const the = new Generator;
  return *the;
}

/// The machine code of one batch; freed with its last kernel.
struct Batch {
  void* handle = nullptr;
  Batch() = default;
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch() {
    if (handle == nullptr) return;
    std::lock_guard lock(generator().mutex);
    generator().get()->release(handle);
  }
};

/// What a kernel shares with its equals: the spec as first seen and its function in a batch.
struct Code {
  std::shared_ptr<const KernelSpec> spec;
  std::shared_ptr<const Batch> batch;
  KernelFunction function = nullptr;
};

[[noreturn]] void fail(const PluginFailure& failure) { throw CompilerError(failure.code, failure.message); }

}  // namespace

struct Compiler::State {
  std::mutex mutex;
  std::unordered_map<std::string, std::weak_ptr<const Code>> cache;
  std::size_t sweep_at = 1024;

  std::shared_ptr<const Code> find(const std::string& key) {
    const auto it = cache.find(key);
    return it == cache.end() ? nullptr : it->second.lock();
  }

  void add(const std::string& key, const std::shared_ptr<const Code>& code) {
    cache[key] = code;
    if (cache.size() < sweep_at) return;
    std::erase_if(cache, [](const auto& entry) { return entry.second.expired(); });
    sweep_at = 2 * cache.size() + 1024;
  }

  /// Fills `out` where the cache knows the key; returns the indices of the others. Equal specs of one call are listed
  /// once.
  std::vector<std::size_t> look_up(const std::vector<std::string>& keys,
                                   std::vector<std::shared_ptr<const Code>>& out) {
    std::vector<std::size_t> missing;
    std::unordered_map<std::string_view, std::size_t> seen;
    std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (!out[i]) out[i] = find(keys[i]);
      if (!out[i] && seen.emplace(keys[i], i).second) missing.push_back(i);
    }
    return missing;
  }
};

Compiler::Compiler() : state_(std::make_unique<State>()) {}
Compiler::~Compiler() = default;

Compiler& Compiler::instance() {
  static auto* const the = new Compiler;
  return *the;
}

namespace {

/// Compiles the missing specs as one batch; without a generator the codes have no function.
std::vector<std::shared_ptr<const Code>> make(std::span<const KernelSpec> specs,
                                              const std::vector<std::size_t>& missing) {
  std::vector<std::shared_ptr<const KernelSpec>> owned;
  std::vector<const KernelSpec*> pointers;
  for (std::size_t i : missing) {
    check(specs[i]);
    owned.push_back(std::make_shared<const KernelSpec>(specs[i]));
    pointers.push_back(owned.back().get());
  }
  std::vector<KernelFunction> functions(missing.size(), nullptr);
  std::shared_ptr<Batch> batch;
  if (const CodeGenerator* plugin = generator().get()) {
    PluginFailure failure;
    batch = std::make_shared<Batch>();
    batch->handle = plugin->compile(pointers.data(), pointers.size(), functions.data(), &failure);
    if (batch->handle == nullptr) fail(failure);
  }
  std::vector<std::shared_ptr<const Code>> out;
  for (std::size_t i = 0; i < missing.size(); ++i) {
    out.push_back(std::make_shared<const Code>(Code{owned[i], batch, functions[i]}));
  }
  return out;
}

}  // namespace

std::vector<Kernel> Compiler::compile(std::span<const KernelSpec> specs) {
  std::vector<std::string> keys;
  for (const KernelSpec& spec : specs) keys.push_back(spec.key());
  std::vector<std::shared_ptr<const Code>> codes(specs.size());
  if (!state_->look_up(keys, codes).empty()) {
    // Declared before the lock: where these are a batch's last owners, releasing it takes the lock again.
    std::vector<std::shared_ptr<const Code>> made;
    std::lock_guard generating(generator().mutex);
    const std::vector<std::size_t> missing = state_->look_up(keys, codes);
    if (!missing.empty()) {
      made = make(specs, missing);
      std::lock_guard lock(state_->mutex);
      for (std::size_t i = 0; i < missing.size(); ++i) state_->add(keys[missing[i]], made[i]);
    }
    state_->look_up(keys, codes);
  }
  std::vector<Kernel> kernels(specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    kernels[i].spec_ = codes[i]->spec;
    kernels[i].function_ = codes[i]->function;
    kernels[i].code_ = std::move(codes[i]);
  }
  return kernels;
}

std::string Compiler::listing(const KernelSpec& spec, Listing what) {
  check(spec);
  const CodeGenerator* plugin = generator().get();
  if (plugin == nullptr) throw CompilerError("KP-C001", "no code generator: " + why_not());
  PluginFailure failure;
  std::lock_guard lock(generator().mutex);
  char* text = plugin->listing(&spec, what == Listing::ir ? 0 : 1, &failure);
  if (text == nullptr) fail(failure);
  std::string out = text;
  plugin->free_text(text);
  return out;
}

bool Compiler::is_available() { return generator().get() != nullptr; }

std::string Compiler::why_not() {
  generator().get();
  return generator().plugin.why_not;
}

}  // namespace kplan::jit
