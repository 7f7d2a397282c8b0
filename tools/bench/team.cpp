// How it works: plain MPI calls; errors end the program, as MPI does by default.
#include "tools/bench/team.hpp"

#include <unistd.h>

#include <vector>

#include "kplan/mpi.hpp"

namespace kplan::bench {

Team team_of(MPI_Comm comm) {
  Team out{comm, 0, 0, nullptr, {}};
  MPI_Comm_rank(comm, &out.rank);
  MPI_Comm_size(comm, &out.size);
  return out;
}

Team first_ranks(const Team& world, int size) {
  Team out;
  MPI_Comm_split(world.comm, world.rank < size ? 0 : MPI_UNDEFINED, world.rank, &out.comm);
  if (out.comm == MPI_COMM_NULL) return out;
  out = team_of(out.comm);
  out.transport = transport::mpi(out.comm);
  return out;
}

void wait_idly(const Team& team) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(team.comm, &request);
  for (int is_done = 0;;) {
    MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
    if (is_done != 0) return;
    usleep(2000);
  }
}

void drive_together(const Team& team) {
  if (!team.driven.empty()) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(team.comm, &request);
    for (unsigned idle = 1;; ++idle) {
      for (const auto& each : team.driven) each->progress();
      int is_done = 0;
      MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
      if (is_done != 0) break;
      team.driven.front()->pause(idle);
    }
  }
  MPI_Barrier(team.comm);  // that ends at the same time on all ranks: none of them drives or sleeps any more
}

std::string first_text(const Team& team, const std::string& mine) {
  const int has_text = mine.empty() ? team.size : team.rank;
  int speaker = team.size;
  MPI_Allreduce(&has_text, &speaker, 1, MPI_INT, MPI_MIN, team.comm);
  if (speaker == team.size) return "";
  auto length = static_cast<int>(mine.size());
  MPI_Bcast(&length, 1, MPI_INT, speaker, team.comm);
  std::string out = mine;
  out.resize(static_cast<std::size_t>(length));
  MPI_Bcast(out.data(), length, MPI_CHAR, speaker, team.comm);
  return out;
}

double largest(const Team& team, double mine) {
  double out = mine;
  MPI_Allreduce(&mine, &out, 1, MPI_DOUBLE, MPI_MAX, team.comm);
  return out;
}

std::size_t largest(const Team& team, std::size_t mine) {
  unsigned long long value = mine, out = 0;
  MPI_Allreduce(&value, &out, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, team.comm);
  return out;
}

bool decided_by_first(const Team& team, bool mine) {
  int value = mine ? 1 : 0;
  MPI_Bcast(&value, 1, MPI_INT, 0, team.comm);
  return value != 0;
}

}  // namespace kplan::bench
