// What a build without libfabric or PMIx has in place of the backend.
#include "kplan/transport.hpp"
#include "transports/codes.hpp"

namespace kplan::transport {

bool has_ofi() { return false; }

std::shared_ptr<Transport> ofi_world() {
  throw Unsupported(codes::no_ofi,
                    "this kplan was built without libfabric; build it with -DKPLAN_OFI=ON where libfabric and PMIx are "
                    "installed with their headers, or use mpi_world() or local()");
}

}  // namespace kplan::transport
