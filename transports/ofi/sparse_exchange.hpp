#pragma once
// Sparse exchanges over the post.

#include <memory>

#include "transports/ofi/world.hpp"

namespace kplan::transport::ofi_backend {

/// The next object, which all ranks number alike.
std::unique_ptr<SparseExchange> sparse_exchange(std::shared_ptr<World> world);

}  // namespace kplan::transport::ofi_backend
