// How it works: an engine of its own for each method, so that no plan is known before.
#include "tools/bench/methods/kplan_method.hpp"

#include <cstdlib>

namespace kplan::bench {
namespace {

/// An engine that lends or does not, which the environment decides. What is set already stays.
Engine engine_of(const Team& team, Lending lending) {
  const bool sets = lending == Lending::off && std::getenv("KPLAN_LEND_BYTES") == nullptr;
  if (sets) setenv("KPLAN_LEND_BYTES", "0", 1);
  Engine out(team.transport);
  if (sets) unsetenv("KPLAN_LEND_BYTES");
  return out;
}

struct Runner {
  Runner(const Team& team, const Plan& plan, const Values& values, const Bindings& bindings,
         std::function<void(Executable&)> f, Lending lending)
      : engine(engine_of(team, lending)), executable(engine.compile(plan, values)), before(std::move(f)) {
    const Written written = lending == Lending::if_written_seldom ? Written::seldom : Written::often;
    for (const auto& [name, memory] : bindings) executable.bind_bytes(name, memory, written);
  }
  void run() {
    if (before) before(executable);
    executable.run();
  }

  Engine engine;
  Executable executable;
  std::function<void(Executable&)> before;
};

}  // namespace

Bindings bindings_of(const Exchange& exchange, const std::vector<std::string>& names) {
  Bindings out;
  for (std::size_t k = 0; k < names.size(); ++k) {
    const Array& array = exchange.arrays.at(k);
    out.emplace_back(names[k], std::span(array.data, array.size_bytes()));
  }
  return out;
}

Method kplan_method(const Team& team, Plan plan, Values values, Bindings bindings,
                    std::function<void(Executable&)> before, Lending lending) {
  const char* const name = lending == Lending::off                ? "kplan"
                           : lending == Lending::if_written_often ? "kplan, allocated"
                                                                  : "kplan, allocated, seldom written";
  return method_of<Runner>(name, team, std::move(plan), std::move(values), std::move(bindings), std::move(before),
                           lending);
}

}  // namespace kplan::bench
