#pragma once
// The memory that a program has allocated for being read in place by the other processes of the node, and what this
// process has mapped of theirs.

#include <map>
#include <memory>

#include "transports/node/neighbours.hpp"
#include "transports/node/process_memory.hpp"
#include "transports/node/segment.hpp"
#include "transports/shared/names.hpp"

namespace kplan::transport::node_path {

/// A name is a file number of its owner's and a segment's serial number, and the offset in it.
class Allocations final : public RegionNames, public std::enable_shared_from_this<Allocations> {
 public:
  explicit Allocations(std::shared_ptr<Neighbours> neighbours) : neighbours_(std::move(neighbours)) {}

  /// See Transport::allocate.
  std::shared_ptr<std::byte> allocate(std::size_t bytes);

  std::optional<RegionName> name_of(const std::byte* region) override;
  const std::byte* find(int rank, const RegionName& name) override;
  bool copy(int rank, RegionCursor theirs, RegionCursor mine) override {
    return copy_from_process(neighbours_->process(rank), theirs, mine);
  }

 private:
  struct Own;
  /// Of other ranks, by rank and number.
  using Windows = std::map<std::pair<int, std::uint64_t>, std::shared_ptr<Segment>>;

  std::shared_ptr<Neighbours> neighbours_;
  std::map<const std::byte*, Own*> own_;  ///< by first byte; those that lie in memory that the program has
  std::weak_ptr<Own> open_;               ///< has room for more
  std::uint32_t next_serial_ = 1;
  Windows windows_;
};

}  // namespace kplan::transport::node_path
