// How it works: `open` splits the channels. Those to other nodes are opened by the base transport; for the others, each
// sender has one room for all its rings of this call (ring_store.hpp), and the receivers find it. Waits of a rank that
// has channels of both kinds must move the base transport too: its peers may be waiting for that. All-gathers and
// sparse exchanges are the base transport's unless all ranks are here and are few.
#include "transports/node/transport.hpp"

#include <algorithm>
#include <cassert>
#include <exception>
#include <map>
#include <utility>

#include "transports/codes.hpp"
#include "transports/environment.hpp"
#include "transports/matching.hpp"
#include "transports/node/allocations.hpp"
#include "transports/node/gathering.hpp"
#include "transports/node/offer.hpp"
#include "transports/node/ring_store.hpp"
#include "transports/node/segments_of_all.hpp"
#include "transports/not_come.hpp"
#include "transports/pause.hpp"
#include "transports/shared/lent_pipes.hpp"
#include "transports/shared/ring.hpp"

namespace kplan::transport::node_path {
namespace {

class NodeTransport final : public Transport {
 public:
  /// `gathering`: where on every rank all others are neighbours, and are few.
  NodeTransport(std::shared_ptr<Backend> base, std::shared_ptr<Neighbours> neighbours,
                std::unique_ptr<Gathering> gathering)
      : base_(std::move(base)),
        in_flight_(base_->in_flight()),
        neighbours_(std::move(neighbours)),
        allocations_(std::make_shared<Allocations>(neighbours_)),
        rings_(neighbours_),
        gathering_(std::move(gathering)),
        distances_(far_from_environment(), neighbours_->share_cores()),
        is_oversubscribed_(transport::is_oversubscribed(neighbours_->count())) {}

  ~NodeTransport() override { in_flight_->end(); }

  std::size_t piece_bytes(int peer) const override {
    return neighbours_->is_here(peer) ? neighbours_->piece_bytes() : base_->piece_bytes(peer);
  }
  std::size_t non_temporal_bytes(int peer) const override {
    return neighbours_->is_here(peer) ? non_temporal_bytes_ : base_->non_temporal_bytes(peer);
  }
  bool delivers_alone(int peer) const override { return neighbours_->is_here(peer) || base_->delivers_alone(peer); }
  bool lends_regions(int peer) const override { return !neighbours_->is_here(peer) && base_->lends_regions(peer); }
  int best_slots(int peer, std::size_t bytes) const override {
    return neighbours_->is_here(peer) ? best_ring_slots(bytes, neighbours_->most(), neighbours_->share_cores())
                                      : base_->best_slots(peer, bytes);
  }
  std::size_t best_shared_bytes(int peer) const override {
    return neighbours_->is_here(peer) ? best_shared_ring_bytes : base_->best_shared_bytes(peer);
  }
  bool places_messages(int peer) const override { return !neighbours_->is_here(peer) && base_->places_messages(peer); }
  std::size_t ahead_bytes(int peer, std::size_t bytes, bool is_placed) const override {
    return neighbours_->is_here(peer) ? 0 : base_->ahead_bytes(peer, bytes, is_placed);
  }
  int most_receivers(int peer) const override { return neighbours_->is_here(peer) ? neighbours_->most() - 1 : 1; }
  bool lends_memory(int peer) const override { return neighbours_->is_here(peer); }
  std::size_t fetch_bytes(int peer) const override {
    return neighbours_->is_here(peer) && neighbours_->is_copied_by(peer) ? fetch_bytes_ : 0;
  }
  bool can_lend(const std::byte* memory) const override { return allocations_->name_of(memory).has_value(); }
  std::shared_ptr<std::byte> allocate(std::size_t bytes) override { return allocations_->allocate(bytes); }
  std::string_view name() const override { return base_->name(); }
  int rank() const override { return base_->rank(); }
  int size() const override { return base_->size(); }
  std::vector<std::string> allgather(std::string_view mine, Clock::time_point deadline) override;
  std::vector<std::unique_ptr<Channel>> open(std::span<const ChannelSpec> specs, Clock::time_point deadline) override;
  std::unique_ptr<SparseExchange> open_exchange(Clock::time_point deadline, Use use) override;
  bool tells_faster() const override { return !gathering_ && base_->tells_faster(); }
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
  void keep_moving(InFlight& moved) override { in_flight_->add(moved); }
  void let_go(InFlight& moved) override { in_flight_->remove(moved); }
  [[gnu::hot]] void pause(unsigned idle_rounds) override {
    constexpr unsigned long_idle = 256, more_turns = 8;
    if (idle_rounds >= long_idle || is_oversubscribed_) turns_ += more_turns;
    // Some milliseconds: who yields to another program before waits until its time slice is over.
    if (has_distant_) base_->pause(idle_rounds);
    else pause_thread(idle_rounds, is_oversubscribed_, {.spins = 1u << 16});
  }
  const bool& has_ended() const override { return base_->has_ended(); }
  std::optional<int> dead() override {
    if (const auto rank = base_->dead()) return rank;
    return neighbours_->dead();
  }
  bool is_dead(int rank) override {
    return neighbours_->is_here(rank) ? neighbours_->is_dead(rank) : base_->is_dead(rank);
  }

 private:
  bool is_rank(int rank) const { return rank >= 0 && rank < size(); }
  Room make_rings(std::span<const ChannelSpec> specs, std::span<std::size_t> offsets, std::map<int, Offer>& offers);
  std::unique_ptr<Channel> find_ring(const ChannelSpec& spec, const Offer& offer, Room& room);
  Pipes open_pipes(Clock::time_point deadline);
  void wait_for_all(Clock::time_point deadline);
  void look_for_missing(Clock::time_point begin, Clock::time_point deadline);

  std::shared_ptr<Backend> base_;
  std::shared_ptr<InFlightList> in_flight_;
  std::shared_ptr<Neighbours> neighbours_;
  std::shared_ptr<Allocations> allocations_;
  RingStore rings_;
  std::unique_ptr<Gathering> gathering_;  ///< null on all ranks or on none
  std::unique_ptr<LentPipes> set_up_pipes_;
  bool are_pipes_free_ = false;  ///< on all ranks, as they said in the last all-gather; the same on all of them
  static constexpr unsigned turns_of_base = 256;
  std::size_t non_temporal_bytes_ = non_temporal_bytes_from_environment();
  std::size_t fetch_bytes_ = fetch_bytes_from_environment();
  Distances distances_;
  bool is_oversubscribed_, moves_base_ = false, has_distant_ = false, has_failed_ = false;
  unsigned turns_ = 0;
};

std::vector<std::unique_ptr<Channel>> NodeTransport::open(std::span<const ChannelSpec> specs,
                                                          Clock::time_point deadline) {
  // Ends whose peers are no ranks are refused with those that are here.
  std::vector<ChannelSpec> here, distant;
  std::vector<std::size_t> here_places, distant_places;
  for (std::size_t k = 0; k < specs.size(); ++k) {
    const bool is_distant = is_rank(specs[k].peer) && !neighbours_->is_here(specs[k].peer);
    (is_distant ? distant : here).push_back(specs[k]);
    (is_distant ? distant_places : here_places).push_back(k);
  }
  std::vector<std::size_t> offsets(here.size());
  std::map<int, Offer> mine;
  for (Announcement& a : announcements_of(here, rank(), size())) mine[a.rank].ends = std::move(a.bytes);
  Room room;
  Problem problem;
  try {
    room = make_rings(here, offsets, mine);
  } catch (const std::exception& error) {
    problem = {without_code(error)};
  }
  std::vector<Announcement> offered, ends;
  for (const auto& [peer, offer] : mine) offered.push_back({peer, encode(offer)});
  std::map<int, Offer> theirs;
  for (const Announcement& a : tell(*this, offered, deadline)) {
    Offer& offer = theirs[a.rank] = decode_offer(a.bytes);
    ends.push_back({a.rank, offer.ends});
  }
  if (!problem) problem = match(here, ends, rank(), size(), Reach::several).problem;

  std::vector<std::unique_ptr<Channel>> out(specs.size());
  try {
    std::map<int, Room> rooms;
    for (std::size_t k = 0; k < here.size() && !problem; ++k) {
      const ChannelSpec& spec = here[k];
      if (spec.direction == Direction::send)
        out[here_places[k]] =
            sending_end({room.owner, room.data + offsets[k]}, spec, allocations_, distances_.to(spec.peer));
      else if (theirs[spec.peer].has_room) out[here_places[k]] = find_ring(spec, theirs[spec.peer], rooms[spec.peer]);
    }
  } catch (const std::exception& error) {
    problem = {without_code(error)};
  }
  const bool is_base_needed = agree(*this, problem, deadline, distant.empty() ? 0 : 1) != 0;  // everything is mapped
  rings_.found();
  if (!is_base_needed) return out;
  moves_base_ = has_distant_ = true;
  auto opened = base_->open(distant, deadline);
  for (std::size_t k = 0; k < opened.size(); ++k) out[distant_places[k]] = std::move(opened[k]);
  return out;
}

/// Room for the rings of the ends that send, at the offsets that it says there, offered to those that receive.
Room NodeTransport::make_rings(std::span<const ChannelSpec> specs, std::span<std::size_t> offsets,
                               std::map<int, Offer>& offers) {
  const auto has_ring = [&](const ChannelSpec& s) {
    return s.direction == Direction::send && s.slots > 0 && is_rank(s.peer);
  };
  std::size_t bytes = 0;
  for (std::size_t k = 0; k < specs.size(); ++k) {
    if (!has_ring(specs[k])) continue;
    offsets[k] = bytes;
    bytes += ring_bytes(specs[k]);
    each_receiver(specs[k], [&](int receiver, ReceiverPlace place) {
      if (!is_rank(receiver) || receiver == rank()) return;  // match() refuses it
      if (!neighbours_->is_here(receiver))
        throw TransportError(codes::cannot_open, "rank " + std::to_string(receiver) + " does not share memory with it");
      offers[receiver].rings.push_back({specs[k].id, offsets[k], place});
    });
  }
  if (bytes == 0) return {};
  auto [room, card] = rings_.make(bytes);
  if (!room.is_clean)
    for (std::size_t k = 0; k < specs.size(); ++k)
      if (has_ring(specs[k])) clear_ring(room.data + offsets[k], specs[k]);
  for (auto& [receiver, offer] : offers) {
    offer.has_room = true;
    offer.room = card;
  }
  return room;
}

/// The receiving end of a ring that its sender has offered; `room`: where its rings lie, found once.
std::unique_ptr<Channel> NodeTransport::find_ring(const ChannelSpec& spec, const Offer& offer, Room& room) {
  if (!room.owner) room = rings_.find(spec.peer, offer.room);
  const auto ring = std::ranges::find(offer.rings, spec.id, &RingCard::id);
  assert(ring != offer.rings.end());  // match() has found its sending end
  return receiving_end({{room.owner, room.data + ring->offset}, ring->place}, spec, allocations_,
                       distances_.from(spec.peer));
}

/// Between ranks that are all here and are few by shared memory, unless somebody brings too much for that.
std::vector<std::string> NodeTransport::allgather(std::string_view mine, Clock::time_point deadline) {
  if (!gathering_) return base_->allgather(mine, deadline);
  base_->require_usable();
  if (has_failed_)
    throw TransportError(codes::unusable, "a collective call after one that failed; make a new transport");
  are_pipes_free_ = false;
  gathering_->begin(mine, set_up_pipes_ && set_up_pipes_->are_free());
  try {
    wait_for_all(deadline);
  } catch (...) {
    has_failed_ = true;
    if (gathering_->given_up().empty())
      gathering_->give_up("rank " + std::to_string(rank()) + " has failed in one; see what it reports");
    throw;
  }
  auto all = gathering_->take();
  are_pipes_free_ = gathering_->were_all_free();
  if (all) return std::move(*all);
  return base_->allgather(mine, deadline);
}

/// Waits for all ranks to come to a collective call that this one has come to.
void NodeTransport::wait_for_all(Clock::time_point deadline) {
  const Clock::time_point begin = Clock::now();
  constexpr unsigned short_idle = 16, rounds_to_look = 64;
  for (unsigned idle = 1; !gathering_->is_complete(); ++idle) {
    // A rank that is waited for may be waiting for what only the base transport moves.
    if (idle > short_idle) base_->progress();
    pause(idle);
    if (idle % rounds_to_look == 0) look_for_missing(begin, deadline);
  }
}

/// Throws where a rank that has not come to a collective call has ended, or should have come by now, or where some
/// rank has given up.
void NodeTransport::look_for_missing(Clock::time_point begin, Clock::time_point deadline) {
  const Clock::time_point now = Clock::now();
  const std::vector<int> missing = gathering_->waits_for();
  if (!missing.empty() && now >= deadline && gathering_->given_up().empty())
    gathering_->give_up(waited_in_vain(rank(), in_seconds(now - begin), missing, size()));
  const std::string given_up = gathering_->given_up();
  if (!given_up.empty()) throw_given_up(rank(), given_up);
  for (const int absent : missing) {
    const bool has_ended = is_dead(absent) || base_->is_dead(absent);
    if (has_ended && !gathering_->has_begun(absent)) throw_ended(rank(), absent);  // it may have begun before it ended
  }
}

/// Collective: pipes between each two ranks, which are all here.
Pipes NodeTransport::open_pipes(Clock::time_point deadline) {
  const auto ranks = static_cast<std::size_t>(size());
  const std::size_t chunk_bytes = (std::size_t{4} << 20) / std::max<std::size_t>(ranks, 4) - sizeof(Chunk);
  // Ranks that share cores had better take much at each turn.
  const bool takes_much = neighbours_->piece_bytes() > 0 && neighbours_->share_cores();
  const std::size_t piece_bytes = takes_much ? chunk_bytes : std::min(neighbours_->piece_bytes(), chunk_bytes);
  const std::size_t stride = pipe_bytes(chunk_bytes);
  const auto segments = segments_of_all(*this, *neighbours_, ranks * stride, deadline);
  Pipes pipes{std::vector<PipeMemory>(ranks),
              std::vector<PipeMemory>(ranks),
              std::vector<std::shared_ptr<Distance>>(ranks),
              {chunk_bytes, piece_bytes, neighbours_->share_cores(), non_temporal_bytes_}};
  const auto own = static_cast<std::size_t>(rank());
  for (std::size_t p = 0; p < ranks; ++p) {
    if (p == own) continue;
    pipes.outgoing[p] = {segments[own], segments[own]->data() + p * stride};
    pipes.distances[p] = distances_.to(static_cast<int>(p));
    pipes.incoming[p] = {segments[p], segments[p]->data() + own * stride};
  }
  return pipes;
}

std::unique_ptr<SparseExchange> NodeTransport::open_exchange(Clock::time_point deadline, Use use) {
  if (!gathering_) {
    if (use == Use::runs) moves_base_ = has_distant_ = true;
    return base_->open_exchange(deadline, use);
  }
  if (use == Use::runs) return shared_exchange(rank(), open_pipes(deadline), in_flight_);
  // Ranks destroy objects when they like, so they ask each other whether all have destroyed the last one, if no
  // all-gather has told them since.
  if (!set_up_pipes_) set_up_pipes_ = std::make_unique<LentPipes>(rank(), open_pipes(deadline), in_flight_);
  base_->require_usable();
  if (!are_pipes_free_) allgather({}, deadline);
  if (!std::exchange(are_pipes_free_, false)) return base_->open_exchange(deadline, use);
  return set_up_pipes_->lend();
}

}  // namespace

std::shared_ptr<Transport> with_node_path(std::shared_ptr<Backend> base) {
  const Clock::time_point deadline = Clock::now() + timeout_from_environment();
  // Ranks that do without take part in what is collective: others may not.
  const bool shares = node_path_from_environment();
  if (base->size() == 1) return base;
  auto neighbours = std::make_shared<Neighbours>(*base, shares, deadline);
  // All ranks keep the path, or none does: what it adds to `open` is collective.
  const char mine = neighbours->count() == base->size() ? 'a' : neighbours->count() > 1 ? '1' : '0';
  bool is_used = false, are_all_near = true;
  for (const std::string& theirs : base->allgather({&mine, 1}, deadline)) {
    is_used = is_used || theirs != "0";
    are_all_near = are_all_near && theirs == "a";
  }
  if (!is_used) return base;
  constexpr int most_with_memory_of_all = 32;
  std::unique_ptr<Gathering> gathering;
  if (are_all_near && base->size() <= most_with_memory_of_all)
    gathering = std::make_unique<Gathering>(*base, *neighbours, deadline);
  return std::make_shared<NodeTransport>(std::move(base), std::move(neighbours), std::move(gathering));
}

}  // namespace kplan::transport::node_path
