#pragma once
// Messages that the transport may send from, or receive into, the program's buffers: plain copies of blocks long enough
// that walking them costs the transport little, in messages so long that packing and unpacking may cost more. Runs try
// which is faster.

#include <memory>
#include <vector>

#include "engine/runtime/native_reduction.hpp"
#include "engine/schedule/schedule.hpp"
#include "kplan/transport.hpp"
#include "transports/environment.hpp"

namespace kplan {

/// What a message must have to be placed; see the functions of transports/environment.hpp of these names.
struct PlacingLimits {
  std::size_t least_bytes = transport::place_bytes_from_environment();
  std::size_t least_block_bytes = transport::place_block_bytes_from_environment();
  /// Messages lie elsewhere from run to run, where the transport must be told anew: only if that is short.
  bool is_moving = false;

  /// The same for messages that go ahead part by part only if they are packed, each part being in the caches when it is
  /// packed and unpacked: only blocks of some length are placed, unless any are.
  PlacingLimits beside_parts() const;
};

/// One end of such a message.
class Placement {
 public:
  /// For a message that is sent; null where it is to be packed.
  static std::unique_ptr<Placement> of_sent(const Statement& statement, const StatementSchedule& s, const Message& m,
                                            const PlacingLimits& limits);
  /// For one that is received; null where it is to be unpacked.
  static std::unique_ptr<Placement> of_received(const Statement& statement, const StatementSchedule& s,
                                                const Message& m, const PlacingLimits& limits);

  /// Whether its blocks are so long that transports move them faster than packing does, as far as one can say before it
  /// was tried.
  bool has_long_blocks() const;

  /// Whether it lies elsewhere from run to run.
  bool is_moving() const { return is_moving_; }

  /// Adds the blocks as they lie now, in the order of the message.
  template <class Byte>
  void list_blocks(const std::vector<BoundMemory>& memory, std::vector<std::span<Byte>>& to) const;

  /// Tells the channel where the message lies now. To be called when that is another place than before; may allocate.
  void tell(transport::Channel& channel, const std::vector<BoundMemory>& memory);

 private:
  Placement(const Message& m, const PlacingLimits& limits);
  bool add(const MessagePart& part, int buffer, std::int64_t element_bytes);
  bool add(Piece piece, int buffer, std::int64_t element_bytes);

  std::vector<int> buffers_;  ///< by blocks
  std::vector<transport::Blocks> blocks_;
  std::int64_t message_bytes_ = 0, block_count_ = 0, offset_count_ = 0, most_blocks_;
  bool is_moving_;
};

}  // namespace kplan
