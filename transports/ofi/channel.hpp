#pragma once
// Channels over an endpoint: a link at either end, and the handle by which the program uses it.

#include <memory>

#include "transports/ofi/world.hpp"

namespace kplan::transport::ofi_backend {

/// An end of a channel, and the number of its link, which is to meet the other end's before it is used.
struct NewEnd {
  std::unique_ptr<Channel> channel;
  std::uint32_t number = 0;
};

/// Memory that others write to, shared by the receiving ends that are opened together.
struct Arena {
  Arena(Endpoint& endpoint, std::size_t bytes);
  Pages pages;
  Registration registration;
};
/// What the slots of one end take of it.
std::size_t arena_bytes(const ChannelSpec& spec);

NewEnd sending_end(const std::shared_ptr<World>& world, const ChannelSpec& spec, int lane);
NewEnd receiving_end(const std::shared_ptr<World>& world, const ChannelSpec& spec, int lane,
                     std::shared_ptr<Arena> arena, std::size_t offset_bytes);

}  // namespace kplan::transport::ofi_backend
