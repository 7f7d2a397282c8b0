#pragma once
// Memory that the provider may read or that others may write to: registered where its provider wants it so.

#include <cstddef>
#include <memory>
#include <utility>

#include "transports/ofi/endpoint.hpp"

namespace kplan::transport::ofi_backend {

/// A registration of memory with the provider. None at all for local use where the provider needs none.
class Registration {
 public:
  Registration() = default;
  ~Registration() {
    if (region_ != nullptr) endpoint_->unregister(region_);
  }
  Registration(Registration&& other) noexcept { *this = std::move(other); }
  Registration& operator=(Registration&& other) noexcept {
    std::swap(endpoint_, other.endpoint_);
    std::swap(region_, other.region_);
    std::swap(subtracted_, other.subtracted_);
    return *this;
  }
  /// For sending from and receiving into. Errors: TransportError.
  static Registration local(Endpoint& endpoint, const void* memory, std::size_t bytes);
  /// For others to write to as well.
  static Registration remote(Endpoint& endpoint, void* memory, std::size_t bytes);

  void* descriptor() const { return region_ == nullptr ? nullptr : fi_mr_desc(region_); }
  std::uint64_t key() const { return fi_mr_key(region_); }
  /// What others must name to write to this place of the registered memory.
  std::uint64_t remote_address(const std::byte* place) const {
    return reinterpret_cast<std::uint64_t>(place) - subtracted_;
  }

 private:
  Registration(Endpoint& endpoint, const void* memory, std::size_t bytes, std::uint64_t access);

  Endpoint* endpoint_ = nullptr;
  fid_mr* region_ = nullptr;
  std::uint64_t subtracted_ = 0;
};

/// Pages of our own.
class Pages {
 public:
  Pages() = default;
  /// Errors: std::bad_alloc.
  explicit Pages(std::size_t bytes);

  std::byte* data() const { return block_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* block) const;
  };
  std::unique_ptr<std::byte, Free> block_;
  std::size_t bytes_ = 0;
};

}  // namespace kplan::transport::ofi_backend
