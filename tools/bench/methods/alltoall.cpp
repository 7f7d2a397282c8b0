// How it works: the dense collectives, with empty parts for ranks that have nothing to do with this one.
#include <algorithm>
#include <numeric>

#include "tools/bench/aligned_memory.hpp"
#include "tools/bench/exchange/packed_parts.hpp"
#include "tools/bench/exchange/typed_parts.hpp"
#include "tools/bench/methods/exchange_methods.hpp"

namespace kplan::bench {
namespace {

std::vector<int> all_ranks(const Exchange& e) {
  std::vector<int> out(static_cast<std::size_t>(e.team.size));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

std::vector<Mover> movers_of(const Exchange& e) {
  std::vector<Mover> out;
  for (const Link& l : e.receives)
    if (l.peer == e.team.rank) out.emplace_back(l, e);
  return out;
}

class Packed {
 public:
  explicit Packed(SharedExchange exchange)
      : exchange_(std::move(exchange)),
        sends_(*exchange_, PackedParts::Side::sends, all_ranks(*exchange_)),
        receives_(*exchange_, PackedParts::Side::receives, all_ranks(*exchange_)),
        movers_(movers_of(*exchange_)),
        type_(basic_type(exchange_->wire_type())) {}
  void run() {
    sends_.pack();
    MPI_Alltoallv(sends_.data, sends_.counts.data(), sends_.offsets.data(), type_, receives_.data,
                  receives_.counts.data(), receives_.offsets.data(), type_, exchange_->team.comm);
    for (Mover& m : movers_) m.move();
    receives_.unpack();
  }

 private:
  SharedExchange exchange_;
  PackedParts sends_, receives_;
  std::vector<Mover> movers_;
  MPI_Datatype type_;
};

/// Whether every rank, this one among them, sends the same number of elements to every rank.
bool has_equal_parts(const Exchange& e) {
  const auto size = static_cast<std::size_t>(e.team.size);
  bool is_equal = e.receives.size() == size && e.sends.size() + 1 == size;
  for (const auto* links : {&e.sends, &e.receives})
    for (const Link& l : *links) is_equal = is_equal && element_count(l.mine) == element_count(e.receives[0].mine);
  return largest(e.team, is_equal ? 0.0 : 1.0) == 0;
}

/// Whether some rank sends what does not lie in one piece.
bool has_scattered_sends(const Exchange& e) {
  const bool is_one_piece = std::ranges::all_of(e.sends, [](const Link& l) { return contiguous_run(l.mine).exists(); });
  return largest(e.team, is_one_piece ? 0.0 : 1.0) > 0;
}

/// MPI_Alltoall: what stays on this rank goes the same way as all else.
class Equal {
 public:
  explicit Equal(SharedExchange exchange) : exchange_(std::move(exchange)) {
    const Exchange& e = *exchange_;
    const Scalar wire = e.wire_type();
    count_ = static_cast<int>(element_count(e.receives[0].mine));
    for (const Link& l : e.sends) packers_.emplace_back(part(l.peer), Packer(l.mine, e.arrays, wire, Combine::assign));
    for (const Link& l : e.receives) {
      unpackers_.emplace_back(part(l.peer), Packer(l.mine, e.arrays, wire, e.combine));
      if (l.peer == e.team.rank) packers_.emplace_back(part(l.peer), Packer(l.theirs, e.arrays, wire, Combine::assign));
    }
    sent_ = AlignedMemory(part(e.team.size));
    received_ = AlignedMemory(part(e.team.size));
  }
  void run() {
    const MPI_Datatype type = basic_type(exchange_->wire_type());
    for (const auto& [first, packer] : packers_) packer.pack(sent_.data() + first);
    MPI_Alltoall(sent_.data(), count_, type, received_.data(), count_, type, exchange_->team.comm);
    for (const auto& [first, packer] : unpackers_) packer.unpack(received_.data() + first);
  }

 private:
  std::size_t part(int peer) const {
    return static_cast<std::size_t>(peer) * static_cast<std::size_t>(count_) * size_of(exchange_->wire_type());
  }
  SharedExchange exchange_;
  int count_ = 0;
  std::vector<std::pair<std::size_t, Packer>> packers_, unpackers_;
  AlignedMemory sent_, received_;
};

class Typed {
 public:
  explicit Typed(SharedExchange exchange)
      : exchange_(std::move(exchange)),
        sends_(*exchange_, exchange_->sends, all_ranks(*exchange_)),
        receives_(*exchange_, exchange_->receives, all_ranks(*exchange_)),
        movers_(movers_of(*exchange_)) {}
  void run() {
    MPI_Alltoallw(sends_.base, sends_.counts.data(), sends_.int_offsets.data(), sends_.types.data(), receives_.base,
                  receives_.counts.data(), receives_.int_offsets.data(), receives_.types.data(), exchange_->team.comm);
    for (Mover& m : movers_) m.move();
  }

 private:
  SharedExchange exchange_;
  TypedParts sends_, receives_;
  std::vector<Mover> movers_;
};

}  // namespace

Method alltoall_packed(SharedExchange exchange) {
  return method_of<Packed>("MPI_Alltoallv, packed", std::move(exchange));
}

Method alltoall_typed(SharedExchange exchange) { return method_of<Typed>("MPI_Alltoallw, types", std::move(exchange)); }

std::vector<Method> alternatives(const Exchange& exchange, int block) {
  const auto shared = std::make_shared<const Exchange>(fused(exchange));
  std::vector<Method> out{packed_persistent("hand, persistent", shared)};
  const bool can_be_typed = shared->stores_as_sent() && !shared->reads_what_it_writes;
  if (can_be_typed) out.push_back(typed_persistent(shared));
  else if (!shared->reads_what_it_writes && has_scattered_sends(*shared)) out.push_back(packed_from_typed(shared));
  out.push_back(neighbour_packed(shared));
  if (can_be_typed) out.push_back(neighbour_typed(shared));
  out.push_back(alltoall_packed(shared));
  if (has_equal_parts(*shared)) out.push_back(method_of<Equal>("MPI_Alltoall, packed", shared));
  if (can_be_typed) out.push_back(alltoall_typed(shared));
  for (Method& m : star_forests(shared, block)) out.push_back(std::move(m));
  return out;
}

}  // namespace kplan::bench
