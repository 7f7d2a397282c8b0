#pragma once
// Exchanges by hand whose pattern only senders know, and which are new in every run.

#include "tools/bench/methods/mail.hpp"
#include "tools/bench/methods/method.hpp"

namespace kplan::bench {

/// NBX (Hoefler, Siebert, Lumsdaine, PPoPP 2010, figure 2).
Method nbx(std::shared_ptr<Mail> mail);
/// Counts by MPI_Alltoall, then messages that are known at both ends.
Method counted_by_alltoall(std::shared_ptr<Mail> mail);
/// The same with MPI_Alltoallv.
Method counted_alltoallv(std::shared_ptr<Mail> mail);
/// The number of senders by MPI_Reduce_scatter_block, then probes: PETSc's way for few ranks.
Method counted_by_reduce_scatter(std::shared_ptr<Mail> mail);
/// Where every rank has a letter for every other one: receives, persistent ones, of all that there is room for.
Method received_with_room(std::shared_ptr<Mail> mail);

}  // namespace kplan::bench
