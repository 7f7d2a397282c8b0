// How it works: counts and offsets are those of the parts one after the other, or of the arrays' own places.
#include "tools/bench/exchange/packed_parts.hpp"

#include <algorithm>

namespace kplan::bench {

std::vector<int> peers_of(const Exchange& exchange, const std::vector<Link>& links) {
  std::vector<int> out;
  for (const Link& l : links)
    if (l.peer != exchange.team.rank) out.push_back(l.peer);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

PackedParts::PackedParts(const Exchange& exchange, Side side, const std::vector<int>& peers) {
  const std::vector<Link>& all = side == Side::sends ? exchange.sends : exchange.receives;
  std::vector<const Link*> links;
  for (const int peer : peers) {
    const auto l = std::ranges::find(all, peer, &Link::peer);
    links.push_back(l == all.end() || peer == exchange.team.rank ? nullptr : &*l);
  }
  if (lies_in_place(exchange, side, links)) return;
  const Scalar wire = exchange.wire_type();
  const Combine combine = side == Side::sends ? Combine::assign : exchange.combine;
  int first = 0;
  for (const Link* l : links) {
    counts.push_back(l ? static_cast<int>(element_count(l->mine)) : 0);
    offsets.push_back(first);
    if (l)
      packers_.emplace_back(Packer(l->mine, exchange.arrays, wire, combine),
                            static_cast<std::size_t>(first) * size_of(wire));
    first += counts.back();
  }
  memory_ = AlignedMemory(static_cast<std::size_t>(first) * size_of(wire));
  data = memory_.data();
}

/// Where all regions are runs of one array, and may be used there.
bool PackedParts::lies_in_place(const Exchange& exchange, Side side, const std::vector<const Link*>& links) {
  if (exchange.reads_what_it_writes || (side == Side::receives && !exchange.stores_as_sent())) return false;
  int array = -1;
  for (const Link* l : links) {
    if (l == nullptr) continue;
    const Run run = contiguous_run(l->mine);
    if (!run.exists() || (array >= 0 && run.array != array)) return false;
    array = run.array;
  }
  if (array < 0) return false;
  for (const Link* l : links) {
    counts.push_back(l ? static_cast<int>(element_count(l->mine)) : 0);
    offsets.push_back(l ? static_cast<int>(contiguous_run(l->mine).first) : 0);
  }
  data = exchange.arrays[static_cast<std::size_t>(array)].data;
  return true;
}

void PackedParts::pack() const {
  for (const auto& [packer, first] : packers_) packer.pack(data + first);
}

void PackedParts::unpack() const {
  for (const auto& [packer, first] : packers_) packer.unpack(data + first);
}

}  // namespace kplan::bench
