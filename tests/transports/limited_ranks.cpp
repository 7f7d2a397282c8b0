#include "tests/transports/limited_ranks.hpp"

#include "kplan/mpi.hpp"

namespace kplan::tests {

void on_limited_ranks(int ranks, transport::mpi_backend::Limits limits, const std::function<void(Transport&)>& body) {
  on_ranks(ranks, [&](Transport& transport) {
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group some = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    int range[1][3] = {{0, transport.size() - 1, 1}};
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_range_incl(all, 1, range, &some);
    MPI_Comm_create_group(MPI_COMM_WORLD, some, 0, &comm);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    body(*make_transport(comm, limits, nullptr));
    MPI_Comm_free(&comm);
  });
}

}  // namespace kplan::tests
