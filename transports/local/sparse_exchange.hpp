#pragma once
// A sparse exchange between threads.

#include <memory>

#include "transports/local/board.hpp"

namespace kplan::transport::local_backend {

/// What `rank` has of the exchange whose board this is.
std::unique_ptr<SparseExchange> sparse_exchange(std::shared_ptr<Board> board, int rank);

}  // namespace kplan::transport::local_backend
