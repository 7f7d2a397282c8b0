#pragma once
// How ends of a channel that share memory tell each other where a region lies: threads by its address, processes by the
// allocation it is in, or, where the system copies from one to the other, by its address, too.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "transports/shared/regions.hpp"

namespace kplan::transport {

/// A region as its owner's peers know it.
struct RegionName {
  std::uint64_t memory = 0, offset = 0;
};

class RegionNames {
 public:
  virtual ~RegionNames() = default;
  RegionNames() = default;
  RegionNames(const RegionNames&) = delete;
  RegionNames& operator=(const RegionNames&) = delete;

  /// Nothing where peers cannot read it.
  virtual std::optional<RegionName> name_of(const std::byte* region) = 0;
  /// The memory of another rank that is called so there; null where it cannot be had.
  virtual const std::byte* find(int rank, const RegionName& name) = 0;
  /// Copies from another rank's memory to as many bytes of this one's. False where that cannot be done; some may have
  /// been copied then.
  virtual bool copy(int rank, RegionCursor theirs, RegionCursor mine) = 0;
};

}  // namespace kplan::transport
