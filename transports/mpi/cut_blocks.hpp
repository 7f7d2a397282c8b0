#pragma once
// A part of a message that lies in blocks of memory.

#include <cstddef>
#include <span>
#include <vector>

#include "kplan/transport.hpp"

namespace kplan::transport::mpi_backend {

/// The bytes from number `first` up to `last` of those that the blocks are of, in order. For each loop that a limit
/// falls into there is one Blocks more. `first < last`, and `last` is no more than there are.
std::vector<Blocks> cut(std::span<const Blocks> blocks, std::size_t first, std::size_t last);

}  // namespace kplan::transport::mpi_backend
