#include "transports/node/process_memory.hpp"

#include <array>

namespace kplan::transport::node_path {

bool copy_from_process(int process, RegionCursor theirs, RegionCursor mine) {
  constexpr std::size_t most_regions = 256;  // the system takes 1024
  std::array<iovec, most_regions> sources, targets;
  while (!mine.is_at_end()) {
    const std::size_t source_count = theirs.list(sources), target_count = mine.list(targets);
    const ssize_t copied = process_vm_readv(process, targets.data(), target_count, sources.data(), source_count, 0);
    if (copied <= 0) return false;
    theirs.advance(static_cast<std::size_t>(copied));
    mine.advance(static_cast<std::size_t>(copied));
  }
  return true;
}

}  // namespace kplan::transport::node_path
