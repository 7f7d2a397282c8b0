#pragma once
// Memory of this process alone.

#include <cstddef>
#include <memory>

namespace kplan::transport {

/// Zeros, aligned to at least 64, in huge pages where they are many; pages of long ones are there once they are
/// touched. Errors: std::bad_alloc, TransportError.
std::shared_ptr<std::byte> zeroed_memory(std::size_t bytes);

}  // namespace kplan::transport
