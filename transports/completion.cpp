#include <fmt/format.h>

#include <string>

#include "kplan/transport.hpp"
#include "transports/codes.hpp"

namespace kplan::transport {

void complete(Transport& transport, SparseExchange& exchange, Clock::time_point deadline, std::string_view doing) {
  constexpr unsigned rounds_a_look = 64;
  const Clock::time_point begin = Clock::now();
  for (unsigned idle = 1; !exchange.is_complete(); ++idle) {
    transport.progress();
    transport.pause(idle);
    if (idle % rounds_a_look != 0) continue;
    const bool is_late = Clock::now() > deadline;
    for (const int rank : exchange.waits_for()) {
      if (exchange.is_complete()) return;
      if (transport.is_dead(rank)) throw TransportError(codes::lost, fmt::format("{}: rank {} has ended", doing, rank));
      if (is_late)
        throw TransportError(
            codes::late,
            fmt::format(
                "{}: rank {} waits for rank {} to take part; timed out after {:.3g} s; KPLAN_TIMEOUT sets the limit",
                doing, transport.rank(), rank, std::chrono::duration<double>(deadline - begin).count()));
    }
  }
}

}  // namespace kplan::transport
