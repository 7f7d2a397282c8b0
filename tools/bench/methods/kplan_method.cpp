// How it works: an engine of its own for each method, so that nothing is shared between workloads.
#include "tools/bench/methods/kplan_method.hpp"

#include "kplan/mpi.hpp"

namespace kplan::bench {
namespace {

struct Runner {
  Runner(const Team& team, const Plan& plan, const Values& values, const Bindings& bindings,
         std::function<void(Executable&)> f)
      : engine(transport::mpi(team.comm)), executable(engine.compile(plan, values)), before(std::move(f)) {
    for (const auto& [name, memory] : bindings) executable.bind_bytes(name, memory);
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
                    std::function<void(Executable&)> before) {
  return method_of<Runner>("kplan", team, std::move(plan), std::move(values), std::move(bindings), std::move(before));
}

}  // namespace kplan::bench
