#pragma once
// What the ranks of a local world share: who is still there, the collective call in progress, the rings on their way
// from the rank that made them to the rank at the other end, and the boards that some ranks have not yet fetched.

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "kplan/transport.hpp"
#include "transports/in_flight.hpp"
#include "transports/local/board.hpp"
#include "transports/shared/ring.hpp"

namespace kplan::transport::local_backend {

class World {
 public:
  explicit World(int ranks);

  int size() const { return static_cast<int>(is_gone_.size()); }
  /// Whether there are more ranks than cores.
  bool share_cores() const { return share_cores_; }

  /// See Transport::allgather. Moves on what the rank has in flight while it waits.
  std::vector<std::string> allgather(int rank, std::string_view mine, Clock::time_point deadline,
                                     InFlightList& in_flight);

  /// Says that a rank's transport is destroyed.
  void leave(int rank);
  std::optional<int> first_gone() const;
  bool is_gone(int rank) const { return is_gone_[static_cast<std::size_t>(rank)].load(std::memory_order_acquire); }

  /// A ring by (sender, receiver, id): the sender offers it, the receiver takes it later in the same call of open.
  using RingName = std::tuple<int, int, std::uint32_t>;
  void offer(const RingName& name, OfferedRing ring);
  OfferedRing take(const RingName& name);

  /// The board of the sparse exchange object that every rank opens as its `number`th; each rank fetches it once.
  std::shared_ptr<Board> board(std::uint64_t number);

 private:
  std::vector<int> missing() const;
  void complete();
  void throw_if_hopeless(int rank) const;
  [[noreturn]] void give_up(int rank, Clock::duration waited);

  bool share_cores_;
  std::vector<std::atomic<bool>> is_gone_;
  std::atomic<int> first_gone_{-1};

  mutable std::mutex mutex_;  // for all below
  std::condition_variable changed_;
  std::vector<std::optional<std::string>> contributions_;
  int came_ = 0;
  std::uint64_t generation_ = 0;
  std::shared_ptr<const std::vector<std::string>> gathered_;  // of the generation before
  std::string given_up_;                                      // why no collective call can succeed any more
  std::map<RingName, OfferedRing> rings_;
  struct WaitingBoard {
    std::shared_ptr<Board> board;
    int fetched = 0;
  };
  std::map<std::uint64_t, WaitingBoard> boards_;
};

}  // namespace kplan::transport::local_backend
