// How it works: the ends that a rank knows, its own and those of its peers that have it at their other end, are sorted
// by (sender, receiver, id), the sending end first, so that the two ends of a channel lie side by side, and both ranks
// meet the same first mistake in what is between them. The place of a channel among those of its pair of ranks, its
// lane, is then known at both ends without another message.
#include "transports/matching.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "transports/bytes.hpp"
#include "transports/codes.hpp"

namespace kplan::transport {
namespace {

struct End {
  EndName name;
  int owner = 0;
  std::size_t place = 0;  ///< in the owner's list
  ChannelSpec spec;       ///< with one of its receivers
  bool is_one_of_several = false;
};

/// A rank's own ends, one for each receiver where there are several.
std::vector<End> own_ends(std::span<const ChannelSpec> specs, int own_rank) {
  std::vector<End> out;
  for (std::size_t place = 0; place < specs.size(); ++place) {
    const ChannelSpec& spec = specs[place];
    const bool sends = spec.direction == Direction::send;
    const auto add = [&](int peer) {
      out.push_back({{sends ? own_rank : peer, sends ? peer : own_rank, spec.id, spec.direction},
                     own_rank,
                     place,
                     spec,
                     !spec.other_receivers.empty()});
      out.back().spec.peer = peer;
      out.back().spec.other_receivers.clear();
    };
    add(spec.peer);
    for (const int receiver : spec.other_receivers) add(receiver);
  }
  return out;
}

void encode(std::string& out, const End& end) {
  append(out, end.spec.id);
  append(out, static_cast<std::uint64_t>(end.spec.capacity_bytes));
  append(out, static_cast<std::int32_t>(end.spec.slots));
  append(out, end.spec.direction);
  append(out, end.spec.is_placed);
  append(out, static_cast<std::uint64_t>(end.spec.ahead_bytes));
  append(out, end.spec.may_leave_messages);
  append(out, end.is_one_of_several);
}

End decode(std::string_view& in, int owner, int peer) {
  End out{{}, owner, 0, {}, false};
  ChannelSpec& spec = out.spec;
  spec.peer = peer;
  spec.id = take<std::uint32_t>(in);
  spec.capacity_bytes = take<std::uint64_t>(in);
  spec.slots = take<std::int32_t>(in);
  spec.direction = take<Direction>(in);
  spec.is_placed = take<bool>(in);
  spec.ahead_bytes = take<std::uint64_t>(in);
  spec.may_leave_messages = take<bool>(in);
  out.is_one_of_several = take<bool>(in);
  const bool sends = spec.direction == Direction::send;
  out.name = {sends ? owner : peer, sends ? peer : owner, spec.id, spec.direction};
  return out;
}

std::string channel_name(const End& end) {
  return "channel " + std::to_string(end.name.id) + " from rank " + std::to_string(end.name.sender) + " to rank " +
         std::to_string(end.name.receiver);
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
  if (spec.is_placed && spec.may_leave_messages) return owner + "placed and with messages that may be left; choose one";
  return {};
}

/// What is wrong with the ends of one channel; empty if nothing.
std::string fault_of_pair(std::span<const End> ends) {
  for (std::size_t k = 0; k + 1 < ends.size(); ++k) {
    if (ends[k].spec.direction == ends[k + 1].spec.direction)
      return "rank " + std::to_string(ends[k].owner) + " opens the " + side(ends[k]) + " end twice; ids must differ";
  }
  const End& first = ends.front();
  if (ends.size() == 1) {
    const bool sends = first.spec.direction == Direction::send;
    return "rank " + std::to_string(first.owner) + " opens the " + side(first) + " end, and rank " +
           std::to_string(first.spec.peer) + " does not open the " + (sends ? "receiving" : "sending") +
           " one; both must, in the same call";
  }
  const ChannelSpec& sent = first.spec;
  const ChannelSpec& received = ends[1].spec;
  if (sent.capacity_bytes != received.capacity_bytes || sent.slots != received.slots)
    return "the sending end has " + shape(sent) + ", the receiving end " + shape(received) + "; they must be the same";
  if (sent.may_leave_messages != received.may_leave_messages)
    return "messages may be left by the " + std::string(side(sent.may_leave_messages ? first : ends[1])) +
           " end alone; the ends must say the same";
  return {};
}

/// What both ends go by; they have the same capacity.
std::size_t ahead_bytes_of(const ChannelSpec& sent, const ChannelSpec& received) {
  const std::size_t ahead = std::min(sent.ahead_bytes, received.ahead_bytes);
  return ahead < sent.capacity_bytes ? ahead : 0;
}

/// The first thing that is wrong with the ends of one channel.
Problem problem_of(std::span<const End> ends, int ranks, Reach reach) {
  for (const End& end : ends)
    if (const std::string fault = fault_of(end, ranks, reach); !fault.empty())
      return {channel_name(end) + ": " + fault, /*is_mismatch=*/true, end.name};
  if (const std::string fault = fault_of_pair(ends); !fault.empty())
    return {channel_name(ends.front()) + ": " + fault, /*is_mismatch=*/true, ends.front().name};
  return {};
}

}  // namespace

std::vector<Announcement> announcements_of(std::span<const ChannelSpec> specs, int own_rank, int ranks) {
  std::map<int, std::string> by_peer;
  for (const End& end : own_ends(specs, own_rank))
    if (end.spec.peer >= 0 && end.spec.peer < ranks && end.spec.peer != own_rank) encode(by_peer[end.spec.peer], end);
  std::vector<Announcement> out;
  for (auto& [peer, bytes] : by_peer) out.push_back({peer, std::move(bytes)});
  return out;
}

Matching match(std::span<const ChannelSpec> specs, std::span<const Announcement> told, int own_rank, int ranks,
               Reach reach) {
  std::vector<End> ends = own_ends(specs, own_rank);
  for (const Announcement& announcement : told)
    for (std::string_view in = announcement.bytes; !in.empty();)
      ends.push_back(decode(in, announcement.rank, own_rank));
  std::ranges::stable_sort(ends, {}, &End::name);

  Matching result{
      std::vector<int>(specs.size()), std::vector<bool>(specs.size()), std::vector<std::size_t>(specs.size()), 0, {}};
  int lane = 0;
  for (std::size_t first = 0, last = 0; first < ends.size(); first = last) {
    while (last < ends.size() && ends[last].name.is_channel_of(ends[first].name)) ++last;
    const std::span channel(&ends[first], last - first);
    result.problem = problem_of(channel, ranks, reach);
    if (result.problem) return result;
    const EndName& name = ends[first].name;
    const bool is_same_pair =
        first > 0 && ends[first - 1].name.sender == name.sender && ends[first - 1].name.receiver == name.receiver;
    lane = is_same_pair ? lane + 1 : 0;
    result.lane_count = std::max(result.lane_count, lane + 1);
    for (const End& end : channel) {
      if (end.owner != own_rank) continue;
      result.lanes[end.place] = lane;
      result.has_placed_end[end.place] = channel[0].spec.is_placed || channel[1].spec.is_placed;
      result.ahead_bytes[end.place] = ahead_bytes_of(channel[0].spec, channel[1].spec);
    }
  }
  return result;
}

int agree(Transport& transport, const Problem& problem, Clock::time_point deadline, int number) {
  std::string mine;
  append(mine, number);
  append(mine, problem.is_mismatch);
  append(mine, problem.end);
  mine += problem.what;
  int largest = number;
  std::optional<Problem> first;
  const std::vector<std::string> all = transport.allgather(mine, deadline);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    std::string_view in = all[rank];
    largest = std::max(largest, take<int>(in));
    Problem theirs;
    theirs.is_mismatch = take<bool>(in);
    theirs.end = take<EndName>(in);
    if (in.empty()) continue;
    theirs.what = theirs.is_mismatch
                      ? std::string(in)
                      : "rank " + std::to_string(rank) + " could not open its channels: " + std::string(in);
    const bool is_earlier = !first || (theirs.is_mismatch && (!first->is_mismatch || theirs.end < first->end));
    if (is_earlier) first = std::move(theirs);
  }
  if (first) throw TransportError(first->is_mismatch ? codes::mismatch : codes::cannot_open, first->what);
  return largest;
}

std::string without_code(const std::exception& error) {
  std::string text = error.what();
  if (const std::size_t code = text.rfind(" [KP-"); code != std::string::npos) text.resize(code);
  return text;
}

std::string rank_list(std::span<const int> ranks) {
  constexpr std::size_t named = 8;
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size() && i < named; ++i) out += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  if (ranks.size() > named) out += " and " + std::to_string(ranks.size() - named) + " more";
  return out;
}

}  // namespace kplan::transport
