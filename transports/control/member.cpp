// How it works: one connection to the hub, looked at whenever somebody asks. What a rank sent before it ended may still
// be on its way through the network when the news of its end is here, so that is told a little later, when those who
// wait have had the time to take it. Rank 0's process holds the hub: when that is gone without notice, so is rank 0,
// and nobody can tell of the others any more; they are taken for lost with it, as a launcher would end them.
#include "transports/control/member.hpp"

#include <charconv>
#include <cstring>
#include <thread>

#include "transports/codes.hpp"
#include "transports/control/hub.hpp"
#include "transports/not_come.hpp"
#include "transports/pause.hpp"

namespace kplan::transport::control {
namespace {

using namespace std::chrono_literals;

constexpr auto time_to_take_the_last = 100ms;
constexpr auto time_of_leaving = 1s;

std::vector<std::string> split(std::string_view all, int ranks) {
  std::vector<std::string> result;
  std::string_view sizes = all.substr(0, static_cast<std::size_t>(ranks) * sizeof(std::uint64_t));
  all.remove_prefix(sizes.size());
  for (; !sizes.empty(); sizes.remove_prefix(sizeof(std::uint64_t))) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, sizes.data(), sizeof bytes);
    result.emplace_back(all.substr(0, bytes));
    all.remove_prefix(bytes);
  }
  return result;
}

}  // namespace

Member::Member(Launch launch, Clock::time_point deadline) : rank_(launch.rank), size_(launch.size) {
  if (size_ == 1) return;
  if (launch.listener.is_open()) serve(std::move(launch.listener), size_, launch.key);
  join(launch, deadline);
  session_ = std::move(launch.session);
}

/// Tries the hub's addresses in turn until one answers as it should: a number may be that of another machine here.
void Member::join(const Launch& launch, Clock::time_point deadline) {
  const Clock::time_point begin = Clock::now();
  const std::string words = greeting(size_, launch.key);
  for (unsigned tries = 0; Clock::now() < deadline; ++tries) {
    for (const Address& address : launch.hub) {
      Socket socket = connect_to(address, std::min(deadline, Clock::now() + 2s));
      if (!socket.is_open()) continue;
      stream_ = std::make_unique<Stream>(std::move(socket));
      stream_->send(Word::hello, rank_, words);
      std::optional<Frame> answer;
      for (unsigned idle = 0; !answer && !stream_->is_closed() && Clock::now() < deadline; ++idle) {
        answer = stream_->receive();
        if (!answer) pause_thread(idle, true);
      }
      if (answer && answer->word == Word::refused)
        throw TransportError(codes::control_failed, "rank " + std::to_string(rank_) + ": " + answer->bytes);
      if (answer && answer->word == Word::welcome && answer->bytes == words) return;
    }
    std::this_thread::sleep_for(std::min<Clock::duration>(1ms * (1 + tries), 50ms));
  }
  std::string places;
  for (const Address& address : launch.hub)
    places += (places.empty() ? "" : ", ") + address.host + " port " + std::to_string(address.port);
  throw TransportError(codes::not_come, "rank " + std::to_string(rank_) + " waited " +
                                            in_seconds(Clock::now() - begin) + " s for rank 0 to answer at " + places +
                                            "; start all ranks, or raise KPLAN_TIMEOUT");
}

Member::~Member() {
  if (!stream_) return;
  stream_->send(Word::leaving, rank_, std::string());
  const Clock::time_point deadline = Clock::now() + time_of_leaving;
  for (unsigned idle = 0; !is_hub_gone_ && Clock::now() < deadline; ++idle) {
    (void)stream_->flush();
    look();
    pause_thread(idle, true);
  }
}

void Member::look() {
  if (!stream_ || is_hub_gone_) return;
  while (std::optional<Frame> frame = stream_->receive()) {
    if (frame->word == Word::gathered) gathered_ = std::move(frame->bytes);
    if (frame->word == Word::given_up) given_up_ = std::move(frame->bytes);
    if (frame->word == Word::ended) {
      std::uint64_t contributions = 0;
      std::from_chars(frame->bytes.data(), frame->bytes.data() + frame->bytes.size(), contributions);
      note_ended(frame->rank, contributions);
    }
  }
  if (!stream_->is_closed()) return;
  is_hub_gone_ = true;
  if (ended_.contains(0)) return;
  note_ended(0, calls_);
  for (int rank = 1; rank < size_; ++rank) {
    if (rank != rank_) note_ended(rank, calls_);
  }
}

void Member::note_ended(int rank, std::uint64_t contributions) {
  if (ended_.emplace(rank, Ended{contributions, Clock::now()}).second && !first_ended_) first_ended_ = rank;
}

std::optional<int> Member::dead() {
  look();
  return first_ended_ && is_dead(*first_ended_) ? first_ended_ : std::nullopt;
}

bool Member::is_dead(int rank) {
  look();
  const auto found = ended_.find(rank);
  return found != ended_.end() && Clock::now() - found->second.heard >= time_to_take_the_last;
}

/// Whether some rank will never come to the call in which this rank is.
void Member::throw_if_hopeless() const {
  for (const auto& [rank, end] : ended_)
    if (end.contributions < calls_ || is_hub_gone_) throw_ended(rank_, rank);
  if (!given_up_.empty()) throw_given_up(rank_, given_up_);
}

/// Says that this rank's time is up. Returns if all have come in the last moment: the hub has told the others so.
void Member::give_up(Clock::duration waited, const std::function<void()>& move_on) {
  stream_->send(Word::late, rank_, in_seconds(waited));
  const Clock::time_point deadline = Clock::now() + time_of_leaving;
  for (unsigned idle = 0; Clock::now() < deadline; ++idle) {
    (void)stream_->flush();
    look();
    if (gathered_) return;
    throw_if_hopeless();
    move_on();
    pause_thread(idle, true);
  }
  throw TransportError(codes::not_come, "rank " + std::to_string(rank_) + " waited " + in_seconds(waited) +
                                            " s in a collective call, and rank 0, which carries it, does not answer");
}

std::vector<std::string> Member::allgather(std::string_view mine, Clock::time_point deadline,
                                           const std::function<void()>& move_on) {
  if (size_ == 1) return {std::string(mine)};
  const Clock::time_point begin = Clock::now();
  ++calls_;
  stream_->send(Word::contribution, rank_, std::string(mine));
  for (unsigned idle = 0;; ++idle) {
    (void)stream_->flush();
    look();
    if (gathered_) break;
    throw_if_hopeless();
    if (Clock::now() >= deadline) give_up(Clock::now() - begin, move_on);
    move_on();
    pause_thread(idle, true);
  }
  session_.reset();  // everyone has come, so nobody asks what rank 0 has told
  const std::string all = std::move(*gathered_);
  gathered_.reset();
  return split(all, size_);
}

}  // namespace kplan::transport::control
