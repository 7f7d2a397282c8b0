// How it works: MPI keeps the bodies of one sender in their order, and so does this list; a body is matched by a probe,
// which tells its size, when it has a place or its receiver waits for something else.
#include "transports/mpi/bodies.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "transports/codes.hpp"
#include "transports/environment.hpp"
#include "transports/mpi/memory_type.hpp"
#include "transports/mpi/message_type.hpp"
#include "transports/pause.hpp"

namespace kplan::transport::mpi_backend {
namespace {

template <class Byte>
std::size_t bytes_of(std::span<const std::span<Byte>> regions) {
  return std::accumulate(regions.begin(), regions.end(), std::size_t{0},
                         [](std::size_t bytes, std::span<Byte> region) { return bytes + region.size(); });
}

/// Calls f(memory, count, type) with what MPI is to send or receive there.
template <class Byte, class F>
void as_message(std::span<const std::span<Byte>> regions, int max_count, const F& f) {
  const auto is_all = [](std::span<Byte> region) { return !region.empty(); };
  if (std::ranges::count_if(regions, is_all) == 1) {
    const std::span<Byte> region = *std::ranges::find_if(regions, is_all);
    const MessageType message(region.size(), max_count);
    return f(region.data(), message.count(), message.type());
  }
  std::vector<int> counts;
  std::vector<MPI_Aint> addresses;
  for (std::span<Byte> region : regions)
    while (!region.empty()) {
      const std::size_t count = std::min(region.size(), static_cast<std::size_t>(max_count));
      counts.push_back(static_cast<int>(count));
      check(MPI_Get_address(region.data(), &addresses.emplace_back()), "MPI_Get_address");
      region = region.subspan(count);
    }
  MPI_Datatype made = MPI_DATATYPE_NULL;
  check(MPI_Type_create_hindexed(static_cast<int>(counts.size()), counts.data(), addresses.data(), MPI_BYTE, &made),
        "MPI_Type_create_hindexed");
  const MemoryType type(made);
  check(MPI_Type_commit(&made), "MPI_Type_commit");
  f(MPI_BOTTOM, 1, made);
}

}  // namespace

void Bodies::send(int to, std::span<const std::span<const std::byte>> regions) {
  as_message(regions, world_->limits().max_count, [&](const void* memory, int count, MPI_Datatype type) {
    outgoing_.push_back({to});
    check(MPI_Isend(memory, count, type, to, tag_, world_->comm(), &outgoing_.back().request), "MPI_Isend");
  });
}

void Bodies::place(int from, std::span<const std::span<std::byte>> regions) {
  const auto early =
      std::ranges::find_if(incoming_, [from](const Incoming& b) { return b.from == from && !b.is_placed; });
  Incoming& body = early == incoming_.end() ? incoming_.emplace_back() : *early;
  body.from = from;
  body.is_placed = true;
  body.regions = regions;
}

void Bodies::take_early() {
  while (std::optional<MatchedMessage> message = match_message(*world_, MPI_ANY_SOURCE, tag_)) {
    const auto placed =
        std::ranges::find_if(incoming_, [&](const Incoming& b) { return b.from == message->from && !b.is_matched; });
    Incoming& body = placed == incoming_.end() ? incoming_.emplace_back() : *placed;
    body.from = message->from;
    receive(body, *message);
  }
}

void Bodies::receive(Incoming& body, MatchedMessage& message) {
  const int max_count = world_->limits().max_count;
  if (body.is_placed && bytes_of(body.regions) == message.bytes) {
    as_message(body.regions, max_count, [&](void* memory, int count, MPI_Datatype type) {
      message.receive(memory, count, type, &body.request);
    });
  } else {
    body.kept = pool_.take(message.bytes);
    message.receive(body.kept->data(), max_count, &body.request);
  }
  body.is_matched = true;
}

/// Whether it is in its place.
bool Bodies::has_come(Incoming& body) {
  if (!body.is_matched) {
    std::optional<MatchedMessage> message = match_message(*world_, body.from, tag_);
    if (!message) return false;
    receive(body, *message);
  }
  if (!is_complete(*world_, &body.request)) return false;
  if (!body.kept) return true;
  const std::byte* from = body.kept->data();
  if (!body.regions.empty() && bytes_of(body.regions) != body.kept->bytes)
    throw TransportError(codes::mismatch, "a body of " + std::to_string(body.kept->bytes) +
                                              " bytes has come from rank " + std::to_string(body.from) +
                                              " for a place of " + std::to_string(bytes_of(body.regions)) +
                                              "; do all ranks run one build?");
  for (const std::span<std::byte> region : body.regions) {
    if (!region.empty()) std::memcpy(region.data(), from, region.size());
    from += region.size();
  }
  pool_.give(std::move(body.kept));
  return true;
}

bool Bodies::end_those_done() {
  std::erase_if(incoming_, [this](Incoming& body) { return body.is_placed && has_come(body); });
  std::erase_if(outgoing_, [this](Outgoing& body) { return is_complete(*world_, &body.request); });
  return outgoing_.empty() && std::ranges::none_of(incoming_, &Incoming::is_placed);
}

void Bodies::name_awaited(std::vector<int>& ranks) const {
  for (const Incoming& body : incoming_)
    if (body.is_placed) ranks.push_back(body.from);
  for (const Outgoing& body : outgoing_) ranks.push_back(body.to);
}

void Bodies::close(const std::shared_ptr<const void>& memory) {
  std::erase_if(incoming_, [](const Incoming& body) { return !body.is_matched; });
  const auto are_over = [this] {
    std::erase_if(incoming_, [this](Incoming& body) { return is_complete(*world_, &body.request); });
    std::erase_if(outgoing_, [this](Outgoing& body) { return is_complete(*world_, &body.request); });
    return incoming_.empty() && outgoing_.empty();
  };
  const auto is_written = [](const Incoming& body) { return !body.kept; };
  const Clock::time_point begin = Clock::now();
  const Clock::duration timeout = timeout_from_environment();
  for (unsigned idle = 0; !are_over(); ++idle) {
    const Clock::duration most = std::ranges::any_of(incoming_, is_written) ? timeout : std::chrono::seconds(1);
    if (Clock::now() - begin >= most) break;
    pause_thread(idle, true);
  }
  for (Incoming& body : incoming_) {
    if (body.kept) world_->adopt({body.request}, std::move(body.kept->memory));
    else world_->adopt({body.request}, memory);
  }
  for (const Outgoing& body : outgoing_) world_->adopt({body.request}, memory);
  incoming_.clear();
  outgoing_.clear();
}

void Bodies::leak() {
  for (Incoming& body : incoming_)
    if (body.kept) body.kept->memory.leak();
}

}  // namespace kplan::transport::mpi_backend
