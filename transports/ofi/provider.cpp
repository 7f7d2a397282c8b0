// How it works: the hints ask for reliable datagrams with tagged messages, first with remote writes that carry data for
// the receiver's completion queue, then without. They allow every mode of memory registration that memory.cpp serves,
// and ask for no order of messages at all: what needs one brings its own numbers. What the hints cannot say is checked.
#include "transports/ofi/provider.hpp"

#include <cstdlib>
#include <cstring>

#include "kplan/error.hpp"
#include "transports/codes.hpp"
#include "transports/environment.hpp"
#include "transports/ofi/tags.hpp"

namespace kplan::transport::ofi_backend {
namespace {

constexpr std::uint32_t api_version = FI_VERSION(1, 14);
constexpr std::size_t notification_bytes = 4;

/// Puts a setting of libfabric's into the environment unless the user has.
void prefer(const char* name, const std::string& value) { setenv(name, value.c_str(), 0); }

Info hints_of(const std::string& name, bool is_one_sided) {
  Info hints(library().dupinfo(nullptr));
  if (!hints) throw std::bad_alloc();
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = FI_TAGGED | (is_one_sided ? FI_RMA : 0);
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->cq_data_size = is_one_sided ? notification_bytes : 0;
  if (!name.empty()) hints->fabric_attr->prov_name = strdup(name.c_str());
  return hints;
}

/// Why it cannot be used though it fits the hints; empty if it can.
std::string fault_of(const fi_info& info) {
  const std::uint64_t tag_bits = info.ep_attr->mem_tag_format;
  if (tag_bits < tags::highest_bit) return "its tags are too short";
  if (info.tx_attr->inject_size == 0 && (info.mode & FI_MSG_PREFIX) != 0) return "it wants prefixes";
  if (info.domain_attr->mr_key_size > sizeof(std::uint64_t)) return "its keys are longer than 64 bits";
  return {};
}

void add_provider(std::vector<Provider>& out, const std::string& name, bool is_one_sided) {
  const Info hints = hints_of(name, is_one_sided);
  fi_info* found = nullptr;
  const int status = library().getinfo(api_version, nullptr, nullptr, 0, hints.get(), &found);
  if (status == -FI_ENODATA) return;
  check(status, "fi_getinfo");
  const Info list(found);
  for (const fi_info* each = list.get(); each != nullptr; each = each->next) {
    if (is_one_sided && each->domain_attr->cq_data_size < notification_bytes) continue;
    if (fault_of(*each).empty()) out.push_back({Info(library().dupinfo(each)), is_one_sided});
  }
}

}  // namespace

std::vector<Provider> providers(int ranks) {
  prefer("FI_UNIVERSE_SIZE", std::to_string(std::max(ranks, 256)));  // ofi_rxm's queues go by it
  std::string name = variable("KPLAN_OFI_PROVIDER");
  std::vector<Provider> out;
  for (const bool is_one_sided : {true, false}) {
    if (!is_one_sided || one_sided_from_environment()) add_provider(out, name, is_one_sided);
  }
  // Newer versions of tcp have reliable datagrams of their own.
  if (const std::size_t layer = name.find(";ofi_rxm"); out.empty() && layer != std::string::npos) {
    name.resize(layer);
    for (const bool is_one_sided : {true, false}) {
      if (!is_one_sided || one_sided_from_environment()) add_provider(out, name, is_one_sided);
    }
  }
  if (!out.empty()) return out;
  if (name.empty())
    throw Unsupported(codes::no_ofi,
                      "no provider of libfabric offers reliable datagrams with tagged messages here; "
                      "see what fi_info -t FI_EP_RDM -c FI_TAGGED lists, or use mpi or local");
  throw Unsupported(codes::bad_provider,
                    "KPLAN_OFI_PROVIDER is `" + variable("KPLAN_OFI_PROVIDER") +
                        "`, and libfabric has no provider of that name which offers reliable datagrams with tagged "
                        "messages here; fi_info -t FI_EP_RDM -c FI_TAGGED lists those that do");
}

}  // namespace kplan::transport::ofi_backend
