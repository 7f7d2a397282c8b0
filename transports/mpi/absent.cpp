// What a build without MPI has in place of the backend.
#include "kplan/transport.hpp"
#include "transports/codes.hpp"

namespace kplan::transport {

bool has_mpi() { return false; }

std::shared_ptr<Transport> mpi_world() {
  throw Unsupported(codes::no_mpi,
                    "this kplan was built without MPI; build it with -DKPLAN_MPI=ON where an MPI library is "
                    "installed, or use local()");
}

}  // namespace kplan::transport
