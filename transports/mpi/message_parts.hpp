#pragma once

#include <algorithm>
#include <cstddef>

namespace kplan::transport::mpi_backend {

/// A channel's messages in parts, each a message to MPI, all of the same length but the last; cut alike at both ends.
/// Of messages that are shorter than the channel's capacity the last parts have no bytes.
struct MessageParts {
  MessageParts(std::size_t capacity_bytes, std::size_t its_part_bytes)
      : part_bytes(its_part_bytes), count((capacity_bytes + its_part_bytes - 1) / its_part_bytes) {}

  /// Where a part of a message of so many bytes begins, ends, and how long it is.
  std::size_t begin(std::size_t part, std::size_t bytes) const { return std::min(part * part_bytes, bytes); }
  std::size_t end(std::size_t part, std::size_t bytes) const { return std::min((part + 1) * part_bytes, bytes); }
  std::size_t length(std::size_t part, std::size_t bytes) const { return end(part, bytes) - begin(part, bytes); }

  std::size_t part_bytes, count;
};

}  // namespace kplan::transport::mpi_backend
