// How it works: the indices arrive where they are used.
#include "tools/bench/methods/told_lists.hpp"

namespace kplan::bench {

std::vector<Link> told_sends(const Exchange& exchange) {
  const MPI_Comm comm = exchange.team.comm;
  std::vector<int> wanted(static_cast<std::size_t>(exchange.team.size), 0), asked(wanted.size());
  for (const Link& l : exchange.receives)
    wanted[static_cast<std::size_t>(l.peer)] = static_cast<int>(element_count(l.theirs));
  MPI_Alltoall(wanted.data(), 1, MPI_INT, asked.data(), 1, MPI_INT, comm);
  std::vector<MPI_Request> requests;
  std::vector<std::pair<int, IndexList>> lists;
  for (int peer = 0; peer < exchange.team.size; ++peer) {
    const int count = asked[static_cast<std::size_t>(peer)];
    if (count == 0) continue;
    IndexList& list = lists.emplace_back(peer, IndexList{}).second;
    list.indices.resize(static_cast<std::size_t>(count));
    MPI_Irecv(list.indices.data(), count, MPI_INT32_T, peer, 130, comm, &requests.emplace_back());
  }
  for (const Link& l : exchange.receives) {
    const auto& list = std::get<IndexList>(l.theirs.at(0));
    MPI_Isend(list.indices.data(), static_cast<int>(list.indices.size()), MPI_INT32_T, l.peer, 130, comm,
              &requests.emplace_back());
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  std::vector<Link> out;
  for (auto& [peer, list] : lists) out.push_back({peer, 0, {std::move(list)}, {}});
  return out;
}

Method packed_told(SharedExchange exchange) {
  return {"hand, lists exchanged", [exchange]() -> std::function<void()> {
            auto told = std::make_shared<Exchange>();
            told->team = exchange->team;
            told->arrays = exchange->arrays;
            told->sends = told_sends(*exchange);
            for (const Link& l : exchange->receives) told->receives.push_back({l.peer, l.tag, l.mine, {}});
            return packed_persistent("", told).prepare();
          }};
}

}  // namespace kplan::bench
