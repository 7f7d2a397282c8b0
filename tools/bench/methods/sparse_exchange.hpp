#pragma once
// Dynamic sparse exchange by hand: nobody knows who sends to it, and every exchange is another.

#include <vector>

#include "tools/bench/aligned_memory.hpp"
#include "tools/bench/methods/method.hpp"
#include "tools/bench/team.hpp"

namespace kplan::bench {

/// What a rank sends in one exchange: a letter for each target, one after the other in the outbox.
struct Letters {
  std::vector<std::int32_t> targets, counts, firsts;
};

/// The rank's memory. A letter from rank s is to lie in row s of the inbox, with its length in received[s].
struct Mail {
  Team team;
  std::int64_t longest = 1;               ///< elements of a row
  AlignedMemory outbox, inbox, received;  ///< f64, f64, i32
  std::vector<Letters> exchanges;         ///< by turns
  std::size_t turn = 0;

  const Letters& next() { return exchanges[turn++ % exchanges.size()]; }
  double* row(int sender) { return inbox.as<double>().data() + sender * longest; }
  void clear_received() {
    for (std::int32_t& count : received.as<std::int32_t>()) count = 0;
  }
};

/// NBX (Hoefler, Siebert, Lumsdaine, PPoPP 2010, figure 2).
Method nbx(std::shared_ptr<Mail> mail);
/// Counts by MPI_Alltoall, then messages that are known at both ends.
Method counted_by_alltoall(std::shared_ptr<Mail> mail);
/// The same with MPI_Alltoallv.
Method counted_alltoallv(std::shared_ptr<Mail> mail);
/// The number of senders by MPI_Reduce_scatter_block, then probes: PETSc's way for few ranks.
Method counted_by_reduce_scatter(std::shared_ptr<Mail> mail);

}  // namespace kplan::bench
