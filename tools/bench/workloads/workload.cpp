// How it works: families add their workloads one after the other.
#include "tools/bench/workloads/workload.hpp"

#include <optional>

#include "tools/bench/exchange/moved_numbers.hpp"
#include "tools/bench/methods/exchange_methods.hpp"

namespace kplan::bench {

Case case_of(Exchange exchange, Planned planned, int block) {
  Case out;
  out.memory = std::make_shared<std::vector<std::shared_ptr<std::byte>>>(allocate(exchange));
  out.exchange = std::make_shared<const Exchange>(std::move(exchange));
  out.planned = std::make_shared<const Planned>(std::move(planned));
  out.bytes = out.exchange->bytes_sent();
  out.peers = static_cast<int>(fused(*out.exchange).sends.size());
  out.messages = static_cast<int>(out.exchange->sends.size());
  out.whole.fill = [e = out.exchange](unsigned seed) { fill(*e, seed); };
  const auto numbers = [ e = out.exchange, made = std::make_shared<std::optional<MovedNumbers>>() ]() -> auto& {
    if (!*made) made->emplace(e);  // when they are asked for, as some commands do not
    return **made;
  };
  out.whole.difference = [e = out.exchange, numbers](unsigned seed) {
    const std::string mistake = numbers().difference(seed);
    if (!mistake.empty()) return mistake;
    numbers().fill_places(seed);
    return change(*e, seed);
  };
  out.moved.fill = [numbers](unsigned seed) {
    numbers().fill_sent(seed);
    numbers().fill_places(seed);
  };
  out.rewrite = [numbers](unsigned seed) { numbers().fill_sent(seed); };
  out.moved.difference = [numbers](unsigned seed) { return numbers().difference(seed); };
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
