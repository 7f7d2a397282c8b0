// How it works: short messages of one phase between the same two ranks become one, and every end of a message gets a
// spec. Pieces of long messages go through one channel for each pair of ranks, or, where all ranks are sent the same
// and one channel can reach several, through one for each sender. Both ends of a message come to the same answers: they
// know its size, that all ranks have the same phases, and are on the same path.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "engine/analysis/planes.hpp"
#include "engine/runtime/joined_statements.hpp"
#include "engine/runtime/program.hpp"
#include "engine/runtime/ways_of_messages.hpp"

namespace kplan {
namespace {

using transport::ChannelSpec;
using transport::Direction;

constexpr std::size_t fewest_both_ways = 64;                        ///< shorter ones may be faster whole
constexpr std::size_t most_private_bytes = std::size_t{256} << 10;  ///< of messages made whole before they are copied
constexpr std::uint32_t pieces_id = std::uint32_t{1} << 31;         ///< added to a statement's number
constexpr std::uint32_t alike_pieces_id = std::uint32_t{1} << 30;   ///< the same, of messages that are alike
constexpr std::uint32_t uniform_id = std::uint32_t{1} << 29;        ///< of what ranks tell of their uniform values
constexpr std::uint32_t ways_id = std::uint32_t{1} << 28;           ///< of what they tell of the way they go
constexpr std::size_t fewest_told_bytes = std::size_t{16} << 10;    ///< of messages whose ways are told

transport::CollectiveSpec collective_spec(const StatementSchedule& s) {
  transport::CollectiveSpec out;
  out.kind = s.collective.kind;
  out.root = static_cast<int>(s.collective.root);
  out.outgoing_bytes.resize(static_cast<std::size_t>(s.size));
  out.incoming_bytes.resize(static_cast<std::size_t>(s.size));
  for (const Message& m : s.sends)
    out.outgoing_bytes[static_cast<std::size_t>(m.peer)] = static_cast<std::size_t>(m.bytes);
  for (const Message& m : s.receives)
    out.incoming_bytes[static_cast<std::size_t>(m.peer)] = static_cast<std::size_t>(m.bytes);
  return out;
}

bool may_be_far(const transport::Transport& transport, int peer, std::size_t bytes) {
  const std::size_t least = transport.non_temporal_bytes(peer);
  return least > 0 && bytes >= least;
}

/// Makes the message ready for slots that are far, with memory in which it can be made before.
void prepare_for_far(const transport::Transport& transport, OutgoingMessage& m) {
  if (!may_be_far(transport, static_cast<int>(m.world_rank), m.bytes)) return;
  if (MessageCursor::serves(m.calls) && m.values_bytes == 0) {
    m.cursor = std::make_unique<MessageCursor>();
    m.cursor->reserve(m.calls);
  } else if (m.bytes > most_private_bytes) {
    return;
  }
  m.may_be_far = true;
  if (m.pieces) m.pieces->may_be_far = true;
}

/// Makes the message ready to be packed while what is packed already is on its way.
void prepare_to_go_ahead(const transport::Transport& transport, OutgoingMessage& m) {
  const std::size_t ahead = transport.ahead_bytes(static_cast<int>(m.world_rank), m.bytes, m.placement != nullptr);
  if (ahead == 0 || m.in_place || !MessageCursor::serves(m.calls)) return;
  m.ahead_bytes = ahead;
  m.cursor = std::make_unique<MessageCursor>();
  m.cursor->reserve(m.calls);
}

/// Makes a long message ready to be unpacked while the rest of it comes, or others move that do not move alone.
void prepare_for_parts(const transport::Transport& transport, IncomingMessage& m, std::size_t part_bytes) {
  const auto peer = static_cast<int>(m.world_rank);
  const bool may_come_ahead = transport.ahead_bytes(peer, m.bytes, m.placement != nullptr) > 0;
  const bool takes_long = may_go_in_pieces(m.bytes, part_bytes) && !transport.delivers_alone(peer);
  if ((!takes_long && !may_come_ahead) || m.pieces || !MessageCursor::serves(m.calls)) return;
  m.may_come_ahead = may_come_ahead;
  m.part_bytes = part_bytes > 0 ? part_bytes : m.bytes;
  m.cursor = std::make_unique<MessageCursor>();
  m.cursor->reserve(m.calls);
}

/// Makes the first message of the first phase to or from each rank that is short enough carry uniform values; the
/// ranks. Both ends know the messages between them, and come to the same.
std::set<int> carry_values(Program& program, auto messages, std::size_t values_bytes,
                           const transport::Transport& transport) {
  constexpr std::size_t longest = 4096;
  std::set<int> out;
  const Schedule& schedule = program.schedule;
  if (!schedule.has_common_phases || schedule.phases.empty()) return out;
  for (const int number : schedule.phases[0]) {
    const auto n = static_cast<std::size_t>(number);
    if (schedule.statements[n].collective.is_native) continue;
    for (auto& m : program.statements[n].*messages) {
      const auto peer = static_cast<int>(m.world_rank);
      if (peer == transport.rank() || out.contains(peer)) continue;
      m.bytes += values_bytes;
      if (m.bytes <= longest && !is_long(m, transport) && !is_long_if_alike(m, transport)) {
        m.values_bytes = values_bytes;
        out.insert(peer);
      } else {
        m.bytes -= values_bytes;
      }
    }
  }
  return out;
}

/// How ranks compare the uniform values of runs with those that they receive from, and with their neighbours in a ring:
/// by messages that carry them, or, where there are none, through channels.
void compare_uniform_values(Program& program, const transport::Transport& transport) {
  const auto varies = [](const StatementSchedule& s) { return s.knowledge.is_varying; };
  const std::size_t values_bytes = UniformValues(*program.bound.model).bytes();
  if (values_bytes == 0 || transport.size() == 1 || std::ranges::any_of(program.schedule.statements, varies)) return;
  std::vector<UniformHistory::End> ends;
  const std::vector<int> neighbours = ring_neighbours(transport.rank(), transport.size());
  const auto add = [&](Direction direction, auto messages, auto scheduled) {
    const std::set<int> carried = carry_values(program, messages, values_bytes, transport);
    std::map<int, bool> peers;  // whether data goes between this rank and them
    for (const int rank : neighbours) peers[rank] = false;
    for (const StatementSchedule& s : program.schedule.statements)
      for (const Message& m : s.*scheduled) {
        const auto peer = static_cast<int>(s.world_rank_of(m.peer));
        if (peer != transport.rank() && (!s.collective.is_native || peers.contains(peer))) peers[peer] = true;
      }
    for (const auto& [peer, is_due] : peers)
      if (!carried.contains(peer)) ends.push_back({peer, direction, is_due});
  };
  add(Direction::send, &StatementProgram::outgoing, &StatementSchedule::sends);
  add(Direction::receive, &StatementProgram::incoming, &StatementSchedule::receives);
  for (StatementProgram& s : program.statements)
    for (OutgoingMessage& m : s.outgoing)
      if (m.values_bytes > 0) m.in_place.reset();
  program.uniform_history = std::make_unique<UniformHistory>(program.bound, std::move(ends));
}

/// The ends of messages that are made ready, and the channels to be opened for them.
class Ends {
 public:
  Ends(const Program& program, const LongMessages& limits, transport::Transport& transport)
      : model_(*program.bound.model), schedule_(program.schedule), limits_(limits), transport_(transport) {
    for (std::size_t p = 0; p < schedule_.phases.size(); ++p)
      for (const int statement : schedule_.phases[p]) phases_[statement] = p;
    if (!schedule_.has_common_phases)
      for (const Statement& s : model_.statements) touched_.push_back(touched_by(model_, s));
  }

  /// All messages are noted before the first is added.
  void note(const auto& message, Direction direction) { bytes_[{message.statement, direction}] += message.bytes; }

  void add(OutgoingMessage& m) {
    const StatementSchedule& s = schedule_of(m);
    const auto peer = static_cast<int>(m.world_rank);
    m.ends_when_sent = !transport_.delivers_alone(peer);
    const Message& sent = *std::ranges::find(s.sends, m.peer, &Message::peer);
    if (may_be_placed(m) && !m.in_place) m.placement = Placement::of_sent(statement_of(m), s, sent, placing(m));
    add(m, Direction::send, sent.is_taken_whole);
    prepare_for_far(transport_, m);
    if (m.is_of_several) return;
    if (transport_.lends_memory(peer) && m.values_bytes == 0)
      m.loan = OutgoingLoan::of(statement_of(m), s, sent, limits_.lending);
    // A receiver takes in pieces what it fetches and cannot fetch into place.
    if (m.pieces || m.is_carried) m.fetched_from = Placement::of_sent(statement_of(m), s, sent, fetching(peer));
    if (!transport_.lends_regions(peer)) m.in_place.reset();
    if (m.values_bytes == 0) prepare_to_go_ahead(transport_, m);
    m.may_be_taken_back = m.in_place && transport_.lends_memory(peer);
    m.ends_when_sent = m.ends_when_sent || (m.in_place && !m.may_be_taken_back);
    if (m.pieces && OutgoingPieces::serves(m.calls) && !m.in_place && !s.reads_what_it_writes)
      m.pieces->when = in_pieces(m);
  }

  void add(IncomingMessage& m) {
    const StatementSchedule& s = schedule_of(m);
    if (may_be_placed(m))
      m.placement = Placement::of_received(statement_of(m), s, *std::ranges::find(s.receives, m.peer, &Message::peer),
                                           placing(m));
    add(m, Direction::receive, !MessageCursor::serves(m.calls));
    if (m.pieces)
      m.fetched_to = Placement::of_received(statement_of(m), s, *std::ranges::find(s.receives, m.peer, &Message::peer),
                                            fetching(static_cast<int>(m.world_rank)));
    if (!m.is_of_several && m.values_bytes == 0) prepare_for_parts(transport_, m, limits_.part_bytes);
  }

  void add(UniformHistory& history) {
    for (UniformHistory::End& end : history.ends())
      add({.peer = end.rank,
           .id = uniform_id,
           .capacity_bytes = history.message_bytes(),
           .slots = UniformHistory::slots,
           .direction = end.direction,
           .may_leave_messages = true},
          end.channel);
  }

  /// With each rank with which long messages are exchanged that either end might place.
  void add(PlacedWays& ways) {
    for (const int peer : placing_) (peer < transport_.rank() ? ways.below() : ways.above()).push_back({peer});
    for (auto* ends : {&ways.below(), &ways.above()})
      for (PlacedWays::End& end : *ends)
        add({.peer = end.rank,
             .id = ways_id,
             .capacity_bytes = PlacedWays::message_bytes,
             .slots = PlacedWays::slots,
             .direction = ends == &ways.below() ? Direction::receive : Direction::send,
             .may_leave_messages = true},
            end.channel);
  }

  void open(transport::Clock::time_point deadline) {
    std::vector<ChannelSpec> specs;
    for (const Wanted& w : specs_) {
      specs.push_back(w.spec);
      if (w.spec.slots == 0) specs.back().slots = transport_.best_slots(w.spec.peer, w.spec.capacity_bytes);
    }
    auto channels = transport_.open(specs, deadline);
    for (std::size_t k = 0; k < channels.size(); ++k) *specs_[k].target = std::move(channels[k]);
  }

 private:
  /// One channel, and whose it is.
  struct Wanted {
    ChannelSpec spec;  ///< slots 0: as many as are best
    std::unique_ptr<transport::Channel>* target = nullptr;
  };

  const StatementSchedule& schedule_of(const auto& message) const {
    return schedule_.statements[static_cast<std::size_t>(message.statement)];
  }
  const Statement& statement_of(const auto& message) const {
    return model_.statements[static_cast<std::size_t>(message.statement)];
  }
  /// What messages with that rank must have to be fetched.
  PlacingLimits fetching(int peer) const { return {transport_.fetch_bytes(peer), limits_.least_fetched_block_bytes}; }
  /// What the message must have to be placed.
  PlacingLimits placing(const auto& message) const {
    const auto goes_ahead = [&](bool is_placed) {
      return transport_.ahead_bytes(static_cast<int>(message.world_rank), message.bytes, is_placed) > 0;
    };
    PlacingLimits out = goes_ahead(false) && !goes_ahead(true) ? limits_.placing.beside_parts() : limits_.placing;
    out.is_moving = !planes_of(model_, statement_of(message)).empty();
    return out;
  }
  bool may_be_placed(const auto& message) const {
    return transport_.places_messages(static_cast<int>(message.world_rank)) && !message.is_of_several &&
           message.values_bytes == 0;
  }
  void add(const ChannelSpec& spec, std::unique_ptr<transport::Channel>& target) { specs_.push_back({spec, &target}); }
  /// The message has a channel of its own, and a part in a stream of pieces where it may go so.
  void add(auto& message, Direction direction, bool is_taken_whole) {
    const auto peer = static_cast<int>(message.world_rank);
    const int id = message.statement;
    if (may_be_placed(message) && message.bytes >= fewest_told_bytes) placing_.insert(peer);
    add({.peer = peer,
         .id = static_cast<std::uint32_t>(id),
         .capacity_bytes = message.bytes,
         .slots = 0,
         .direction = direction,
         .is_placed = message.placement != nullptr,
         .ahead_bytes =
             message.is_of_several ? 0 : transport_.ahead_bytes(peer, message.bytes, message.placement != nullptr)},
        message.channel);
    if (message.is_of_several) return;
    if (go_alike(message)) add_alike_pieces(message, id);
    else if (!is_taken_whole && is_long(message, transport_)) add_pieces(message, stream(peer, id, direction), id);
  }
  /// When a sent message goes in pieces. Where about as much comes meanwhile, both ranks are busy all the time anyway,
  /// and trials say what is better for shorter messages. Elsewhere the receiver has nothing to do while all is packed.
  InPieces in_pieces(const OutgoingMessage& message) {
    if (go_alike(message)) return InPieces::always;
    const std::size_t piece = transport_.piece_bytes(static_cast<int>(message.world_rank));
    return message.bytes < fewest_both_ways * piece && go_both_ways(message.statement) ? InPieces::tried
                                                                                       : InPieces::always;
  }
  /// Whether this rank is sent about as much as it sends with that statement, by whomever.
  bool go_both_ways(int statement) {
    const auto [found, is_new] = both_ways_.try_emplace(statement);
    if (!is_new) return found->second;
    std::size_t there = 0, back = 0;
    for (const int s : schedule_.phases[phases_.at(statement)]) {
      there += bytes_of(s, Direction::send);
      if (!follows_elsewhere(s, statement)) back += bytes_of(s, Direction::receive);
    }
    const auto [less, more] = std::minmax(there, back);
    return found->second = less > 0 && 2 * less >= more;
  }
  std::size_t bytes_of(int statement, Direction direction) const {
    const auto found = bytes_.find({statement, direction});
    return found == bytes_.end() ? 0 : found->second;
  }
  /// Whether a statement that runs together with `first` here may wait on other ranks for what that brings.
  bool follows_elsewhere(int statement, int first) const {
    if (schedule_.has_common_phases || statement <= first) return false;
    const std::set<int>& writes = touched_[static_cast<std::size_t>(first)].writes;
    return std::ranges::any_of(touched_[static_cast<std::size_t>(statement)].reads,
                               [&](int buffer) { return writes.contains(buffer); });
  }
  /// Whether the message goes to several ranks alike, through one channel where it goes in pieces.
  bool go_alike(const auto& message) const {
    const StatementSchedule& s = schedule_of(message);
    return schedule_.has_common_phases && !s.is_taken_whole_by_some && goes_alike(s, message, transport_);
  }
  static void add_pieces(auto& message, const std::shared_ptr<PieceStream>& stream, int statement) {
    using Pieces = typename std::decay_t<decltype(message.pieces)>::element_type;
    message.pieces = std::make_unique<Pieces>(message.bytes, stream, statement);
    message.pieces->reserve(message.calls);
  }
  /// The first message of a statement to be sent has pieces, which carry the others.
  void add_alike_pieces(OutgoingMessage& message, int statement) {
    const auto peer = static_cast<int>(message.world_rank);
    if (!alike_out_) {
      alike_spec_ = specs_.size();
      alike_out_ = new_stream(peer, alike_pieces_id + static_cast<std::uint32_t>(statement), Direction::send);
    }
    OutgoingMessage*& first = first_alike_[statement];
    if (!first) {
      first = &message;
      add_pieces(message, alike_out_, statement);
    } else {
      first->carried.push_back(&message);
      message.is_carried = true;
    }
    ChannelSpec& spec = specs_[alike_spec_].spec;
    if (peer != spec.peer && std::ranges::find(spec.other_receivers, peer) == spec.other_receivers.end())
      spec.other_receivers.push_back(peer);
  }
  void add_alike_pieces(IncomingMessage& message, int statement) {
    const auto peer = static_cast<int>(message.world_rank);
    std::shared_ptr<PieceStream>& in = alike_in_[peer];
    if (!in) in = new_stream(peer, alike_pieces_id + static_cast<std::uint32_t>(statement), Direction::receive);
    add_pieces(message, in, statement);
  }
  /// The stream of all other long messages from one rank to another; `statement`: that of the first of them.
  const std::shared_ptr<PieceStream>& stream(int peer, int statement, Direction direction) {
    std::shared_ptr<PieceStream>& out = streams_[{peer, direction}];
    if (!out) out = new_stream(peer, pieces_id + static_cast<std::uint32_t>(statement), direction);
    return out;
  }
  std::shared_ptr<PieceStream> new_stream(int peer, std::uint32_t id, Direction direction) {
    const std::size_t piece = transport_.piece_bytes(peer);
    auto out = std::make_shared<PieceStream>(piece);
    add({.peer = peer,
         .id = id,
         .capacity_bytes = PieceStream::head_bytes + piece,
         .slots = PieceStream::slots,
         .direction = direction},
        out->channel);
    return out;
  }
  const PlanModel& model_;
  const Schedule& schedule_;
  const LongMessages& limits_;
  transport::Transport& transport_;
  std::map<int, std::size_t> phases_;                                          ///< by statement
  std::map<std::pair<int, Direction>, std::shared_ptr<PieceStream>> streams_;  ///< by peer
  std::shared_ptr<PieceStream> alike_out_;
  std::size_t alike_spec_ = 0;                              ///< of its channel
  std::map<int, OutgoingMessage*> first_alike_;             ///< by statement
  std::map<int, std::shared_ptr<PieceStream>> alike_in_;    ///< by sender
  std::map<std::pair<int, Direction>, std::size_t> bytes_;  ///< by statement
  std::map<int, bool> both_ways_;                           ///< by statement, where it was asked
  std::vector<Touched> touched_;                            ///< by statement; none where phases are common
  std::set<int> placing_;                                   ///< see PlacedWays
  std::vector<Wanted> specs_;
};

}  // namespace

std::vector<TakenWhole> taken_whole(const Program& program, const transport::Transport& transport) {
  std::vector<TakenWhole> out;
  for (const StatementProgram& s : program.statements)
    for (const IncomingMessage& m : s.incoming)
      if (!m.is_local && (is_long(m, transport) || is_long_if_alike(m, transport)) && !MessageCursor::serves(m.calls))
        out.push_back({s.statement, m.world_rank});
  return out;
}

void open_channels(Program& program, const LongMessages& limits, transport::Transport& transport,
                   transport::Clock::time_point deadline) {
  share_messages(program, transport);
  join_statements(program);
  enclose_messages(program, transport);
  compare_uniform_values(program, transport);
  const auto schedule_of = [&](int statement) -> const StatementSchedule& {
    return program.schedule.statements[static_cast<std::size_t>(statement)];
  };
  Ends ends(program, limits, transport);
  for (StatementProgram& s : program.statements) {
    if (schedule_of(s.statement).collective.is_native) continue;
    for (const OutgoingMessage& m : s.outgoing) ends.note(m, Direction::send);
    for (const IncomingMessage& m : s.incoming)
      if (!m.is_local) ends.note(m, Direction::receive);
  }
  for (StatementProgram& s : program.statements) {
    if (const StatementSchedule& schedule = schedule_of(s.statement); schedule.collective.is_native) {
      s.collective = transport.open_collective(collective_spec(schedule), deadline);
      continue;
    }
    for (OutgoingMessage& m : s.outgoing) ends.add(m);
    for (IncomingMessage& m : s.incoming)
      if (!m.is_local) ends.add(m);
  }
  if (program.uniform_history) ends.add(*program.uniform_history);
  ends.add(program.placed_ways);
  ends.open(deadline);
}

}  // namespace kplan
