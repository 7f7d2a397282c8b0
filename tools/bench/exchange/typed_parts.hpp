#pragma once
// A datatype for each of a list of links, as MPI's `w` collectives take them.

#include "tools/bench/exchange/region_type.hpp"

namespace kplan::bench {

struct TypedParts {
  /// In the order of the peers given; those without a link have a count of 0.
  TypedParts(const Exchange& exchange, const std::vector<Link>& links, const std::vector<int>& peers) {
    base = type_base(exchange, links);
    for (const int peer : peers) {
      const Link* found = nullptr;
      for (const Link& l : links)
        if (l.peer == peer && peer != exchange.team.rank) found = &l;
      if (found) owners.push_back(region_type(found->mine, exchange, base));
      types.push_back(found ? owners.back().get() : MPI_BYTE);
      counts.push_back(found ? 1 : 0);
    }
    offsets.assign(peers.size(), 0);
    int_offsets.assign(peers.size(), 0);
  }

  void* base = nullptr;
  std::vector<int> counts, int_offsets;
  std::vector<MPI_Aint> offsets;
  std::vector<MPI_Datatype> types;
  std::vector<OwnedType> owners;
};

}  // namespace kplan::bench
