#pragma once
// libfabric, opened when it is first needed, so that programs which never use it do not get what its providers bring
// along: device scans and handlers of signals. Only these functions are the library's; all others are calls through its
// objects. And the errors that its calls return.

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <memory>
#include <string>

namespace kplan::transport::ofi_backend {

struct Library {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;
};

/// Loads it at the first call. Errors: Unsupported where it is not installed.
const Library& library();

struct FreeInfo {
  void operator()(fi_info* info) const { library().freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

struct CloseFid {
  template <class Object>
  void operator()(Object* object) const {
    (void)fi_close(&object->fid);
  }
};
/// An open object of libfabric's.
template <class Object>
using Open = std::unique_ptr<Object, CloseFid>;

/// What libfabric says of a negative status.
std::string words_of(long status);
/// Throws TransportError with these words unless `status` is 0 or more.
[[noreturn]] void throw_failed(long status, const char* call);
inline void check(long status, const char* call) {
  if (status < 0) [[unlikely]]
    throw_failed(status, call);
}

}  // namespace kplan::transport::ofi_backend
