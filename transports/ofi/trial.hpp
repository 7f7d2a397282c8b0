#pragma once
// Writes of one byte, by which a rank finds out what its provider can do.

#include "transports/ofi/endpoint.hpp"
#include "transports/ofi/links.hpp"
#include "transports/ofi/memory.hpp"

namespace kplan::transport::ofi_backend {

/// Where a rank lets others try to write.
struct Target {
  std::uint64_t address = 0, key = 0;
};

/// Attempts to write to another rank.
class Trial final : public Operation {
 public:
  Trial(Endpoint& endpoint, int to, const Target& target) : Operation(to), endpoint_(endpoint), target_(target) {
    registration_ = Registration::local(endpoint, &byte_, sizeof byte_);
  }
  ssize_t write() {
    return fi_writedata(endpoint_.ep(), &byte_, sizeof byte_, registration_.descriptor(), no_slot,
                        endpoint_.address(peer()), target_.address, target_.key, context());
  }
  ssize_t inject() {
    return fi_inject_writedata(endpoint_.ep(), &byte_, sizeof byte_, no_slot, endpoint_.address(peer()),
                               target_.address, target_.key);
  }

 private:
  ssize_t post() override { return 0; }
  void ended() override {}

  Endpoint& endpoint_;
  Target target_;
  Registration registration_;
  std::byte byte_{};
};

}  // namespace kplan::transport::ofi_backend
