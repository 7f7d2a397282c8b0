#include "transports/not_come.hpp"

#include <fmt/format.h>

#include "transports/codes.hpp"
#include "transports/matching.hpp"

namespace kplan::transport {

std::string in_seconds(Clock::duration time) {
  return fmt::format("{:.3f}", std::chrono::duration<double>(time).count());
}

std::string waited_in_vain(int rank, std::string_view seconds, std::span<const int> missing, int ranks) {
  return fmt::format(
      "rank {} waited {} s for {} of {} to come to it; make the same collective calls in the same order on every rank, "
      "or raise KPLAN_TIMEOUT",
      rank, seconds, rank_list(missing), ranks);
}

void throw_given_up(int rank, const std::string& why) {
  throw TransportError(codes::not_come, fmt::format("rank {} is in a collective call, and {}", rank, why));
}

void throw_ended(int rank, int ended) {
  throw TransportError(codes::lost,
                       fmt::format("rank {} waits in a collective call for rank {}, which has ended; see what rank {} "
                                   "reports",
                                   rank, ended, ended));
}

}  // namespace kplan::transport
