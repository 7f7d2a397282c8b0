#pragma once
// The transport over a control plane, as the backend and its tests make it.

#include <memory>

#include "transports/backend.hpp"
#include "transports/ofi/world.hpp"

namespace kplan::transport::ofi_backend {

/// Collective over the members. Tests lower the limits; they must be the same on all ranks.
std::shared_ptr<Backend> make_transport(std::unique_ptr<control::Member> member, Limits limits,
                                        Clock::time_point deadline);

}  // namespace kplan::transport::ofi_backend
