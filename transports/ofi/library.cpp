// How it works: functions are looked up with the version that the linker would have chosen, which CMake found out: a
// newer library keeps those that go with the structures of older headers. Before it is loaded, the environment is told,
// unless it says otherwise, that no provider is to install a handler of SIGSEGV.
#include "transports/ofi/library.hpp"

#include <dlfcn.h>

#include <cstdlib>

#include "kplan/error.hpp"
#include "transports/codes.hpp"

namespace kplan::transport::ofi_backend {
namespace {

Library load() {
  setenv("IPATH_NO_BACKTRACE", "1", 0);
  void* const file = ::dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr)
    throw Unsupported(codes::no_ofi, std::string("libfabric cannot be loaded: ") + ::dlerror() +
                                         "; install it (libfabric1), or use mpi or local");
  Library out;
  const auto find = [file](auto& function, const char* name, const char* version) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlvsym(file, name, version));
    if (function == nullptr)
      throw Unsupported(codes::no_ofi, std::string("the libfabric that is installed has no ") + name + " of " +
                                           version + "; install one as new as that which kplan was built with");
  };
  find(out.getinfo, "fi_getinfo", KPLAN_VERSION_OF_fi_getinfo);
  find(out.freeinfo, "fi_freeinfo", KPLAN_VERSION_OF_fi_freeinfo);
  find(out.dupinfo, "fi_dupinfo", KPLAN_VERSION_OF_fi_dupinfo);
  find(out.fabric, "fi_fabric", KPLAN_VERSION_OF_fi_fabric);
  find(out.strerror, "fi_strerror", KPLAN_VERSION_OF_fi_strerror);
  return out;
}

}  // namespace

const Library& library() {
  static const Library the_library = load();
  return the_library;
}

std::string words_of(long status) { return library().strerror(static_cast<int>(-status)); }

void throw_failed(long status, const char* call) {
  throw TransportError(codes::ofi_failed, std::string(call) + " failed: " + words_of(status));
}

}  // namespace kplan::transport::ofi_backend
