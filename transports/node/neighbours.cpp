// How it works: every rank makes a small piece of shared memory with a random mark in it and says where it is; who can
// open it and finds the mark is on the same node, in the same process namespace, and allowed to. Who can also copy the
// mark from where the process has it can copy anything. A process file descriptor of each neighbour tells of its end at
// once, also of a kill.
#include "transports/node/neighbours.hpp"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "transports/bytes.hpp"
#include "transports/environment.hpp"
#include "transports/node/process_memory.hpp"
#include "transports/node/segment.hpp"
#include "transports/pause.hpp"

namespace kplan::transport::node_path {
namespace {

struct Card {
  std::int32_t process = 0, file = -1;
  std::uint64_t mark[2] = {0, 0};
  const std::byte* mark_of_process = nullptr;
  std::size_t piece_bytes = piece_bytes_from_environment();
};

/// What a rank reaches of another.
enum Reached : char { nothing = '0', shared_memory = '1', all_memory = '2' };

/// Whether the memory that the card speaks of is there.
bool can_open(const Card& card) {
  try {
    const auto segment = Segment::open(card.process, card.file, sizeof card.mark);
    return std::memcmp(segment->data(), card.mark, sizeof card.mark) == 0;
  } catch (const TransportError&) {
    return false;
  }
}

bool can_copy(const Card& card) {
  std::byte mark[sizeof card.mark];
  const iovec theirs{const_cast<std::byte*>(card.mark_of_process), sizeof mark}, mine{mark, sizeof mark};  // only read
  return copy_from_process(card.process, RegionCursor({&theirs, 1}), RegionCursor({&mine, 1})) &&
         std::memcmp(mark, card.mark, sizeof mark) == 0;
}

}  // namespace

Neighbours::Neighbours(Transport& transport, bool shares, Clock::time_point deadline)
    : rank_(transport.rank()),
      processes_(static_cast<std::size_t>(transport.size())),
      is_dead_(processes_.size()),
      is_copied_by_(processes_.size()),
      files_(processes_.size(), -1) {
  Card mine;
  mine.process = getpid();
  mine.mark_of_process = reinterpret_cast<const std::byte*>(mine.mark);
  std::shared_ptr<Segment> segment;
  try {
    segment = Segment::create(sizeof mine.mark);
    std::random_device random;
    for (std::uint64_t& word : mine.mark) word = (static_cast<std::uint64_t>(random()) << 32) | random();
    std::memcpy(segment->data(), mine.mark, sizeof mine.mark);
    mine.file = shares ? segment->file() : -1;
  } catch (const std::exception&) {
    mine.file = -1;  // no neighbours, then
  }
  const auto cards = transport.allgather({reinterpret_cast<const char*>(&mine), sizeof mine}, deadline);
  std::string reached(cards.size(), Reached::nothing);
  std::vector<Card> others(cards.size());
  for (std::size_t r = 0; r < cards.size(); ++r) {
    std::memcpy(&others[r], cards[r].data(), sizeof(Card));
    piece_bytes_ = std::min(piece_bytes_, others[r].piece_bytes);
    if (mine.file >= 0 && others[r].file >= 0 && can_open(others[r]))
      reached[r] = can_copy(others[r]) ? Reached::all_memory : Reached::shared_memory;
  }
  const int in_reach =
      static_cast<int>(reached.size()) - static_cast<int>(std::ranges::count(reached, Reached::nothing));
  std::string found = reached;
  append(found, in_reach);
  append(found, is_oversubscribed(in_reach));
  const auto reaches = transport.allgather(found, deadline);
  for (std::string_view theirs : reaches) {
    theirs.remove_prefix(reached.size());
    most_ = std::max(most_, take<int>(theirs));
    share_cores_ = take<bool>(theirs) || share_cores_;
  }
  poll_ = epoll_create1(EPOLL_CLOEXEC);
  for (std::size_t r = 0; r < cards.size(); ++r) {
    const char reaches_this = reaches[r][static_cast<std::size_t>(rank_)];
    const bool is_mutual = reached[r] != Reached::nothing && reaches_this != Reached::nothing;
    if (!is_mutual || static_cast<int>(r) == rank_) continue;
    processes_[r] = others[r].process;
    is_copied_by_[r] = reaches_this == Reached::all_memory;
    ++count_;
    watch(static_cast<int>(r));
  }
}

Neighbours::~Neighbours() {
  for (const int file : files_)
    if (file >= 0) close(file);
  if (poll_ >= 0) close(poll_);
}

void Neighbours::watch(int rank) {
#ifdef SYS_pidfd_open
  const int file = static_cast<int>(syscall(SYS_pidfd_open, process(rank), 0));
  if (file < 0 || poll_ < 0) return;
  files_[static_cast<std::size_t>(rank)] = file;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = static_cast<std::uint32_t>(rank);
  epoll_ctl(poll_, EPOLL_CTL_ADD, file, &event);
#endif
}

std::optional<int> Neighbours::dead() {
  if (count_ == 1 || poll_ < 0) return first_dead_;
  epoll_event events[8];
  const int ended = epoll_wait(poll_, events, 8, 0);
  for (int k = 0; k < ended; ++k) {
    const auto rank = static_cast<std::size_t>(events[k].data.u32);
    is_dead_[rank] = true;
    if (!first_dead_) first_dead_ = static_cast<int>(rank);
    epoll_ctl(poll_, EPOLL_CTL_DEL, files_[rank], nullptr);
  }
  return first_dead_;
}

bool Neighbours::is_dead(int rank) {
  dead();
  return is_dead_[static_cast<std::size_t>(rank)];
}

}  // namespace kplan::transport::node_path
