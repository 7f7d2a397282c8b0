#pragma once
// Memory for the rings of this node's ranks. Making and mapping shared memory takes longer than compiling a small plan,
// so the rings of many plans lie in one segment, which neighbours map once.

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "transports/node/neighbours.hpp"
#include "transports/node/segment.hpp"

namespace kplan::transport::node_path {

/// Room for the rings of one call of `open`, as its owner tells others.
struct RoomCard {
  std::int64_t file = -1;           ///< of its segment, until all ranks have found it
  std::uint64_t segment_bytes = 0;  ///< of that
  std::uint64_t serial = 0;         ///< which of its owner's segments it is; 0: one for this room alone
  std::uint64_t offset = 0;         ///< of the room there
};

/// Room, for as long as somebody has `owner`.
struct Room {
  std::shared_ptr<void> owner;
  std::byte* data = nullptr;
  bool is_clean = true;  ///< all zeros; else as earlier rings have left it
};

/// One rank's. Belongs to its thread, as do the owners that it gives away; these may outlive it.
class RingStore {
 public:
  explicit RingStore(std::shared_ptr<Neighbours> neighbours);
  RingStore(const RingStore&) = delete;
  RingStore& operator=(const RingStore&) = delete;
  ~RingStore();

  /// Room of this rank's own, aligned to 64. All ranks have found() what was made before. Errors: TransportError.
  std::pair<Room, RoomCard> make(std::size_t bytes);
  /// Another rank's, which has not let go of it. Errors: TransportError.
  Room find(int rank, const RoomCard& card);
  /// After a collective call that followed make() and find(): nobody needs what only served to find room.
  void found();

 private:
  struct Shared;
  Shared& shared_segment(std::size_t bytes);

  std::shared_ptr<Neighbours> neighbours_;
  std::unique_ptr<Shared> open_;               ///< the segment that has room for more
  std::vector<std::unique_ptr<Shared>> full_;  ///< those before it
  std::weak_ptr<Segment> unfound_;             ///< made for one room
  std::uint64_t last_serial_ = 0;
  std::map<std::pair<int, std::uint64_t>, std::shared_ptr<Segment>> known_;  ///< others', by rank and serial
};

}  // namespace kplan::transport::node_path
