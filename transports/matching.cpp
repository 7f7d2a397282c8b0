// How it works: the ends of all ranks are sorted by (sender, receiver, id), the sending end first, so that the two
// ends of a channel lie side by side and every rank meets the same first mistake. The place of a channel among those
// of its pair of ranks, its lane, is then known at both ends without another message.
#include "transports/matching.hpp"

#include <algorithm>
#include <tuple>

#include "transports/bytes.hpp"
#include "transports/codes.hpp"

namespace kplan::transport {
namespace {

struct End {
  int sender = 0;
  int receiver = 0;
  int owner = 0;
  std::size_t place = 0;  // in the owner's list
  ChannelSpec spec;       // with one of its receivers
  bool is_one_of_several = false;

  auto key() const { return std::tuple(sender, receiver, spec.id, spec.direction); }
  bool is_channel_of(const End& other) const {
    return sender == other.sender && receiver == other.receiver && spec.id == other.spec.id;
  }
};

/// The ends of one rank, one for each receiver where there are several.
std::vector<End> decode(int owner, std::string_view bytes) {
  std::vector<End> ends;
  for (std::size_t place = 0; !bytes.empty(); ++place) {
    ChannelSpec spec;
    std::vector<int> peers{take<std::int32_t>(bytes)};
    spec.id = take<std::uint32_t>(bytes);
    spec.capacity_bytes = take<std::uint64_t>(bytes);
    spec.slots = take<std::int32_t>(bytes);
    spec.direction = static_cast<Direction>(take<std::uint8_t>(bytes));
    spec.is_placed = take<std::uint8_t>(bytes) != 0;
    for (auto others = take<std::uint8_t>(bytes) != 0 ? take<std::uint32_t>(bytes) : 0; others > 0; --others)
      peers.push_back(take<std::int32_t>(bytes));
    for (const int peer : peers) {
      spec.peer = peer;
      const bool sends = spec.direction == Direction::send;
      ends.push_back({sends ? owner : peer, sends ? peer : owner, owner, place, spec, peers.size() > 1});
    }
  }
  return ends;
}

std::string channel_name(const End& end) {
  return "channel " + std::to_string(end.spec.id) + " from rank " + std::to_string(end.sender) + " to rank " +
         std::to_string(end.receiver);
}

std::string shape(const ChannelSpec& spec) {
  return std::to_string(spec.capacity_bytes) + " bytes and " + std::to_string(spec.slots) + " slots";
}

const char* side(const End& end) { return end.spec.direction == Direction::send ? "sending" : "receiving"; }

/// What is wrong with an end by itself; empty if nothing.
std::string fault_of(const End& end, int ranks, Reach reach) {
  const ChannelSpec& spec = end.spec;
  const std::string owner = "rank " + std::to_string(end.owner) + " opens the " + side(end) + " end ";
  if (spec.peer < 0 || spec.peer >= ranks)
    return owner + "with peer " + std::to_string(spec.peer) + "; ranks are 0 to " + std::to_string(ranks - 1);
  if (spec.peer == end.owner) return owner + "with itself as peer; copy local data instead";
  if (spec.capacity_bytes < 1) return owner + "with a capacity of 0 bytes; it must be at least 1";
  if (spec.slots < 1) return owner + "with " + std::to_string(spec.slots) + " slots; it must be at least 1";
  if (end.is_one_of_several && (reach == Reach::one || spec.direction == Direction::receive || spec.is_placed))
    return owner + "for several peers; only sending ends that are not placed may be, where all share memory";
  return {};
}

/// What is wrong with the ends [first, last) of one channel; empty if nothing.
std::string fault_of_pair(const End* first, const End* last) {
  for (const End* end = first; end + 1 != last; ++end) {
    if (end->spec.direction == end[1].spec.direction)
      return "rank " + std::to_string(end->owner) + " opens the " + side(*end) + " end twice; ids must differ";
  }
  if (last - first == 1) {
    const bool sends = first->spec.direction == Direction::send;
    return "rank " + std::to_string(first->owner) + " opens the " + side(*first) + " end, and rank " +
           std::to_string(first->spec.peer) + " does not open the " + (sends ? "receiving" : "sending") +
           " one; both must, in the same call";
  }
  const ChannelSpec& sent = first[0].spec;
  const ChannelSpec& received = first[1].spec;
  if (sent.capacity_bytes != received.capacity_bytes || sent.slots != received.slots)
    return "the sending end has " + shape(sent) + ", the receiving end " + shape(received) + "; they must be the same";
  return {};
}

}  // namespace

std::string encode(std::span<const ChannelSpec> specs) {
  std::string out;
  for (const ChannelSpec& spec : specs) {
    append(out, static_cast<std::int32_t>(spec.peer));
    append(out, spec.id);
    append(out, static_cast<std::uint64_t>(spec.capacity_bytes));
    append(out, static_cast<std::int32_t>(spec.slots));
    append(out, static_cast<std::uint8_t>(spec.direction));
    append(out, static_cast<std::uint8_t>(spec.is_placed));
    append(out, static_cast<std::uint8_t>(!spec.other_receivers.empty()));
    if (spec.other_receivers.empty()) continue;
    append(out, static_cast<std::uint32_t>(spec.other_receivers.size()));
    for (const int receiver : spec.other_receivers) append(out, static_cast<std::int32_t>(receiver));
  }
  return out;
}

Matching match(std::span<const std::string> lists, int own_rank, Reach reach) {
  const int ranks = static_cast<int>(lists.size());
  std::vector<End> ends;
  for (int owner = 0; owner < ranks; ++owner)
    for (End& end : decode(owner, lists[static_cast<std::size_t>(owner)])) ends.push_back(std::move(end));
  std::sort(ends.begin(), ends.end(), [](const End& a, const End& b) { return a.key() < b.key(); });

  const auto refuse = [](const End& end, const std::string& fault) {
    throw TransportError(codes::mismatch, channel_name(end) + ": " + fault);
  };
  Matching result;
  int lane = 0;
  for (std::size_t first = 0, last = 0; first < ends.size(); first = last) {
    for (last = first; last < ends.size() && ends[last].is_channel_of(ends[first]); ++last) {
      if (const std::string fault = fault_of(ends[last], ranks, reach); !fault.empty()) refuse(ends[last], fault);
    }
    if (const std::string fault = fault_of_pair(&ends[first], ends.data() + last); !fault.empty())
      refuse(ends[first], fault);
    const bool is_same_pair =
        first > 0 && ends[first - 1].sender == ends[first].sender && ends[first - 1].receiver == ends[first].receiver;
    lane = is_same_pair ? lane + 1 : 0;
    result.lane_count = std::max(result.lane_count, lane + 1);
    for (std::size_t i = first; i < last; ++i) {
      if (ends[i].owner != own_rank) continue;
      if (result.lanes.size() <= ends[i].place) {
        result.lanes.resize(ends[i].place + 1);
        result.has_placed_end.resize(ends[i].place + 1);
      }
      result.lanes[ends[i].place] = lane;
      result.has_placed_end[ends[i].place] = ends[first].spec.is_placed || ends[last - 1].spec.is_placed;
    }
  }
  return result;
}

void agree(Transport& transport, std::string_view problem, Clock::time_point deadline) {
  throw_first(transport.allgather(problem, deadline));
}

void throw_first(std::span<const std::string> problems) {
  for (std::size_t rank = 0; rank < problems.size(); ++rank) {
    if (!problems[rank].empty())
      throw TransportError(codes::cannot_open,
                           "rank " + std::to_string(rank) + " could not open its channels: " + problems[rank]);
  }
}

std::string rank_list(std::span<const int> ranks) {
  constexpr std::size_t named = 8;
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size() && i < named; ++i) out += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  if (ranks.size() > named) out += " and " + std::to_string(ranks.size() - named) + " more";
  return out;
}

}  // namespace kplan::transport
