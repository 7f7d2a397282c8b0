// How it works: the provider's mode bits say whether it wants memory registered that only this rank uses, and whether
// others name a place in it by its address or by its distance from the front.
#include "transports/ofi/memory.hpp"

#include <new>

namespace kplan::transport::ofi_backend {
namespace {

constexpr std::align_val_t page{4096};

}  // namespace

Registration::Registration(Endpoint& endpoint, const void* memory, std::size_t bytes, std::uint64_t access)
    : endpoint_(&endpoint), region_(endpoint.register_memory(memory, bytes, access)) {
  if (!endpoint.provider().wants(FI_MR_VIRT_ADDR)) subtracted_ = reinterpret_cast<std::uint64_t>(memory);
}

Registration Registration::local(Endpoint& endpoint, const void* memory, std::size_t bytes) {
  if (!endpoint.provider().wants(FI_MR_LOCAL) || bytes == 0) return {};
  const std::uint64_t write = endpoint.provider().is_one_sided ? FI_WRITE : 0;
  return {endpoint, memory, bytes, FI_SEND | FI_RECV | write};
}

Registration Registration::remote(Endpoint& endpoint, void* memory, std::size_t bytes) {
  return {endpoint, memory, bytes, FI_REMOTE_WRITE};
}

Pages::Pages(std::size_t bytes)
    : block_(bytes == 0 ? nullptr : static_cast<std::byte*>(::operator new(bytes, page))), bytes_(bytes) {}

void Pages::Free::operator()(std::byte* block) const { ::operator delete(block, page); }

}  // namespace kplan::transport::ofi_backend
