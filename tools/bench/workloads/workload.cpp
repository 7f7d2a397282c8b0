// How it works: families add their workloads one after the other.
#include "tools/bench/workloads/workload.hpp"

#include "tools/bench/exchange/moved_numbers.hpp"
#include "tools/bench/methods/exchange_methods.hpp"

namespace kplan::bench {

Case case_of(Exchange exchange, Planned planned, int block) {
  Case out;
  out.memory = std::make_shared<std::vector<std::shared_ptr<std::byte>>>(allocate(exchange));
  out.exchange = std::make_shared<const Exchange>(std::move(exchange));
  out.planned = std::make_shared<const Planned>(std::move(planned));
  out.bytes = out.exchange->bytes_sent();
  out.whole.fill = [e = out.exchange](unsigned seed) { fill(*e, seed); };
  out.whole.difference = [e = out.exchange](unsigned seed) { return difference(*e, seed); };
  out.moved = [e = out.exchange] {
    const auto numbers = std::make_shared<const MovedNumbers>(e);
    return Contents{[numbers](unsigned seed) { numbers->fill(seed); },
                    [numbers](unsigned seed) { return numbers->difference(seed); }};
  };
  const Bindings bindings = bindings_of(*out.exchange, out.planned->names);
  for (const Lending lending : {Lending::off, Lending::if_written_often, Lending::if_written_seldom})
    out.methods.push_back(
        kplan_method(out.exchange->team, out.planned->plan, out.planned->values, bindings, nullptr, lending));
  for (Method& m : alternatives(*out.exchange, block)) out.methods.push_back(std::move(m));
  return out;
}

std::vector<Workload> all_workloads() {
  std::vector<Workload> out;
  for (const auto add : {add_kanor, add_halos, add_fields, add_transposes, add_redistributions, add_ghosts,
                         add_particles, add_finite_elements, add_conversions, add_dynamic, add_sweeps, add_collectives})
    add(out);
  return out;
}

}  // namespace kplan::bench
