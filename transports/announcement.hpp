#pragma once
// What ranks tell ranks that do not know of them, when channels are opened or a plan is compiled.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kplan/transport.hpp"

namespace kplan::transport {

/// What one rank tells another, which does not know of it: to that rank, or from it.
struct Announcement {
  int rank = 0;
  std::string bytes;
};

/// Collective: gives every announcement to its rank. Returns those for this one, by ascending sender. All are
/// all-gathered where ranks are few, else they go by a sparse exchange. `doing`: what a rank was doing that waited in
/// vain. Errors: TransportError.
std::vector<Announcement> tell(Transport& transport, std::span<const Announcement> announcements,
                               Clock::time_point deadline, std::string_view doing = "opening channels");

}  // namespace kplan::transport
