#pragma once
// Which of libfabric's providers carries the bytes, and what it can do.

#include <string>
#include <vector>

#include "transports/ofi/library.hpp"

namespace kplan::transport::ofi_backend {

struct Provider {
  Info info;
  /// Whether it says that it writes into other ranks' memory and notifies them.
  bool is_one_sided = false;

  std::string name() const { return info->fabric_attr->prov_name; }
  bool wants(std::uint64_t mr_mode) const { return (info->domain_attr->mr_mode & mr_mode) != 0; }
  /// Whether it joins processes of one machine alone.
  bool is_local() const { return name().find("shm") != std::string::npos; }
};

/// What can be tried, the best first: those named KPLAN_OFI_PROVIDER, or all in libfabric's order, which write before
/// those that do not. Errors: PlanError for variables that are wrong,
/// Unsupported when there is none.
std::vector<Provider> providers(int ranks);

}  // namespace kplan::transport::ofi_backend
