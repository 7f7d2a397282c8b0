// How it works: `open` splits the channels. Those to other nodes are opened by the base transport; for the others, each
// sender makes one segment for all its rings of this call, and the receivers map it. Waits of a rank that has channels
// of both kinds must move the base transport too: its peers may be waiting for that. Sparse exchanges are the base
// transport's unless all ranks are here and are few.
#include "transports/node/transport.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>

#include "transports/codes.hpp"
#include "transports/matching.hpp"
#include "transports/node/allocations.hpp"
#include "transports/pause.hpp"
#include "transports/shared/exchange.hpp"
#include "transports/shared/ring.hpp"

namespace kplan::transport::node_path {
namespace {

/// Where the rings of one rank lie; the rings follow.
struct Card {
  std::int64_t file = -1;
  std::uint64_t bytes = 0;
};

/// One ring in its sender's segment.
struct RingCard {
  std::int64_t receiver = 0;
  std::uint64_t id = 0, offset = 0;
};

template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T take(std::string_view& in) {
  T out;
  std::memcpy(&out, in.data(), sizeof out);
  in.remove_prefix(sizeof out);
  return out;
}

class NodeTransport final : public Transport {
 public:
  /// `are_all_near`: on every rank all others are neighbours.
  NodeTransport(std::shared_ptr<Backend> base, std::shared_ptr<Neighbours> neighbours, bool are_all_near)
      : base_(std::move(base)),
        in_flight_(base_->in_flight()),
        neighbours_(std::move(neighbours)),
        allocations_(std::make_shared<Allocations>(neighbours_)),
        is_oversubscribed_(transport::is_oversubscribed(neighbours_->count())),
        has_pipes_(are_all_near && base_->size() <= most_ranks_with_pipes) {}

  ~NodeTransport() override { in_flight_->end(); }

  std::size_t piece_bytes(int peer) const override {
    return neighbours_->is_here(peer) ? piece_bytes_ : base_->piece_bytes(peer);
  }
  std::size_t non_temporal_bytes(int peer) const override {
    return neighbours_->is_here(peer) ? non_temporal_bytes_ : base_->non_temporal_bytes(peer);
  }
  bool delivers_alone(int peer) const override { return neighbours_->is_here(peer) || base_->delivers_alone(peer); }
  bool lends_regions(int peer) const override { return !neighbours_->is_here(peer) && base_->lends_regions(peer); }
  int best_slots(int peer, std::size_t bytes) const override {
    return neighbours_->is_here(peer) ? best_ring_slots(bytes, neighbours_->most()) : base_->best_slots(peer, bytes);
  }
  std::size_t best_shared_bytes(int peer) const override {
    return neighbours_->is_here(peer) ? 0 : base_->best_shared_bytes(peer);
  }
  bool places_messages(int peer) const override { return !neighbours_->is_here(peer) && base_->places_messages(peer); }
  bool lends_memory(int peer) const override { return neighbours_->is_here(peer); }
  bool can_lend(const std::byte* memory) const override { return allocations_->name_of(memory).has_value(); }
  std::shared_ptr<std::byte> allocate(std::size_t bytes) override { return allocations_->allocate(bytes); }
  std::string_view name() const override { return base_->name(); }
  int rank() const override { return base_->rank(); }
  int size() const override { return base_->size(); }
  std::vector<std::string> allgather(std::string_view mine, Clock::time_point deadline) override {
    return base_->allgather(mine, deadline);
  }
  std::vector<std::unique_ptr<Channel>> open(std::span<const ChannelSpec> specs, Clock::time_point deadline) override;
  std::unique_ptr<SparseExchange> open_exchange(Clock::time_point deadline, Use use) override;
  bool tells_faster() const override { return !has_pipes_ && base_->tells_faster(); }
  bool has_collectives() const override { return base_->has_collectives(); }
  std::unique_ptr<Collective> open_collective(const CollectiveSpec& spec, Clock::time_point deadline) override {
    moves_base_ = true;
    return base_->open_collective(spec, deadline);
  }
  [[gnu::hot]] void progress() override {
    // The base transport has its turn also when nothing of ours is on it: others may wait for what only it moves. Not
    // soon, though: its code may be in no cache, and a look at it then takes ten times as long as a short message.
    if (moves_base_ || ++turns_ >= turns_of_base) {
      turns_ = 0;
      base_->progress();
    } else {
      in_flight_->move_on();
    }
  }
  [[gnu::hot]] void pause(unsigned idle_rounds) override {
    constexpr unsigned long_idle = 256, more_turns = 8;
    if (idle_rounds >= long_idle || is_oversubscribed_) turns_ += more_turns;
    if (has_distant_) base_->pause(idle_rounds);
    else pause_thread(idle_rounds, is_oversubscribed_);
  }
  std::optional<int> dead() override {
    if (const auto rank = base_->dead()) return rank;
    return neighbours_->dead();
  }
  bool is_dead(int rank) override {
    return neighbours_->is_here(rank) ? neighbours_->is_dead(rank) : base_->is_dead(rank);
  }

 private:
  std::shared_ptr<Backend> base_;
  std::shared_ptr<InFlightList> in_flight_;
  std::shared_ptr<Neighbours> neighbours_;
  std::shared_ptr<Allocations> allocations_;
  static constexpr unsigned turns_of_base = 256;
  static constexpr int most_ranks_with_pipes = 32;
  std::size_t piece_bytes_ = piece_bytes_from_environment();
  std::size_t non_temporal_bytes_ = non_temporal_bytes_from_environment();
  Distances distances_{far_from_environment()};
  bool is_oversubscribed_, moves_base_ = false, has_distant_ = false;
  bool has_pipes_;  ///< for sparse exchanges of runs; the same on all ranks
  unsigned turns_ = 0;
};

std::vector<std::unique_ptr<Channel>> NodeTransport::open(std::span<const ChannelSpec> specs,
                                                          Clock::time_point deadline) {
  (void)match(allgather(encode(specs), deadline), rank());

  std::vector<ChannelSpec> distant;
  std::vector<std::size_t> distant_places, offsets(specs.size());
  Card mine;
  std::string rings, problem;
  std::shared_ptr<Segment> segment;
  try {
    for (std::size_t k = 0; k < specs.size(); ++k) {
      if (!neighbours_->is_here(specs[k].peer)) {
        distant.push_back(specs[k]);
        distant_places.push_back(k);
      } else if (specs[k].direction == Direction::send) {
        offsets[k] = mine.bytes;
        mine.bytes += ring_bytes(specs[k].capacity_bytes, specs[k].slots);
        append(rings, RingCard{specs[k].peer, specs[k].id, offsets[k]});
      }
    }
    if (mine.bytes > 0) segment = Segment::create(mine.bytes);
    if (segment) mine.file = segment->file();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  agree(*this, problem, deadline);
  std::string card;
  append(card, mine);
  const auto cards = allgather(card + rings, deadline);

  std::vector<std::unique_ptr<Channel>> out(specs.size());
  try {
    std::map<int, std::shared_ptr<Segment>> segments;
    for (std::size_t k = 0; k < specs.size(); ++k) {
      const int peer = specs[k].peer;
      if (!neighbours_->is_here(peer)) continue;
      if (specs[k].direction == Direction::send) {
        out[k] = sending_end({segment, segment->data() + offsets[k]}, specs[k], allocations_, distances_.to(peer));
        continue;
      }
      std::string_view theirs = cards[static_cast<std::size_t>(peer)];
      const Card where = take<Card>(theirs);
      auto& mapped = segments[peer];
      if (!mapped) mapped = Segment::open(neighbours_->process(peer), static_cast<int>(where.file), where.bytes);
      while (!theirs.empty()) {
        const RingCard ring = take<RingCard>(theirs);
        if (ring.receiver == rank() && ring.id == specs[k].id)
          out[k] = receiving_end({mapped, mapped->data() + ring.offset}, specs[k], allocations_);
      }
    }
  } catch (const std::exception& error) {
    problem = error.what();
  }
  agree(*this, problem, deadline);  // everything is mapped: the files can be closed
  if (segment) segment->close_file();
  bool has_distant = false;
  for (const std::string& theirs : allgather(distant.empty() ? "" : "1", deadline))
    has_distant = has_distant || !theirs.empty();
  if (!has_distant) return out;
  moves_base_ = has_distant_ = true;
  auto opened = base_->open(distant, deadline);
  for (std::size_t k = 0; k < opened.size(); ++k) out[distant_places[k]] = std::move(opened[k]);
  return out;
}

std::unique_ptr<SparseExchange> NodeTransport::open_exchange(Clock::time_point deadline, Use use) {
  if (use == Use::set_up || !has_pipes_) {
    if (use == Use::runs) moves_base_ = has_distant_ = true;
    return base_->open_exchange(deadline, use);
  }
  const auto ranks = static_cast<std::size_t>(size());
  const std::size_t chunk_bytes = (std::size_t{4} << 20) / std::max<std::size_t>(ranks, 4) - sizeof(Chunk);
  const std::size_t stride = pipe_bytes(chunk_bytes);
  Card mine;
  std::string problem;
  std::shared_ptr<Segment> segment;
  try {
    segment = Segment::create(mine.bytes = ranks * stride);
    mine.file = segment->file();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  agree(*this, problem, deadline);
  std::string card;
  append(card, mine);
  const auto cards = allgather(card, deadline);
  Pipes pipes{std::vector<PipeMemory>(ranks), std::vector<PipeMemory>(ranks),
              std::vector<std::shared_ptr<Distance>>(ranks), chunk_bytes, non_temporal_bytes_};
  try {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      const auto p = static_cast<std::size_t>(peer);
      std::string_view theirs = cards[p];
      const Card where = take<Card>(theirs);
      const auto mapped = Segment::open(neighbours_->process(peer), static_cast<int>(where.file), where.bytes);
      pipes.outgoing[p] = {segment, segment->data() + p * stride};
      pipes.distances[p] = distances_.to(peer);
      pipes.incoming[p] = {mapped, mapped->data() + static_cast<std::size_t>(rank()) * stride};
    }
  } catch (const std::exception& error) {
    problem = error.what();
  }
  agree(*this, problem, deadline);  // everything is mapped: the files can be closed
  segment->close_file();
  return shared_exchange(rank(), std::move(pipes), in_flight_);
}

}  // namespace

std::shared_ptr<Transport> with_node_path(std::shared_ptr<Backend> base) {
  const Clock::time_point deadline = Clock::now() + timeout_from_environment();
  if (!node_path_from_environment() || base->size() == 1) return base;
  auto neighbours = std::make_shared<Neighbours>(*base, deadline);
  // All ranks keep the path, or none does: what it adds to `open` is collective.
  const char mine = neighbours->count() == base->size() ? 'a' : neighbours->count() > 1 ? '1' : '0';
  bool is_used = false, are_all_near = true;
  for (const std::string& theirs : base->allgather({&mine, 1}, deadline)) {
    is_used = is_used || theirs != "0";
    are_all_near = are_all_near && theirs == "a";
  }
  if (!is_used) return base;
  return std::make_shared<NodeTransport>(std::move(base), std::move(neighbours), are_all_near);
}

}  // namespace kplan::transport::node_path
