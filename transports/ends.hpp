#pragma once
// A channel's end serves one direction; these bases turn the calls of the other one into errors.

#include "kplan/transport.hpp"

namespace kplan::transport {

[[noreturn]] inline void refuse_direction(const char* call) {
  throw InternalError("KP-X001", std::string(call) + " was called on the wrong end of a channel");
}

/// The end that sends.
class SendingEnd : public Channel {
 public:
  const std::byte* arrived(std::uint64_t) final { refuse_direction("arrived"); }
  void release(std::uint64_t) final { refuse_direction("release"); }
};

/// The end that receives.
class ReceivingEnd : public Channel {
 public:
  std::byte* send_slot(std::uint64_t) final { refuse_direction("send_slot"); }
  void put(std::uint64_t, std::size_t) final { refuse_direction("put"); }
  void put_in_place(std::uint64_t, const std::byte*, std::size_t) final { refuse_direction("put_in_place"); }
  bool is_sent(std::uint64_t) final { refuse_direction("is_sent"); }
};

}  // namespace kplan::transport
