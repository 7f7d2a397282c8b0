#pragma once
// A rank's end of the control plane: collective calls for set-up, and news of ranks that have ended.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transports/control/launch.hpp"
#include "transports/control/stream.hpp"

namespace kplan::transport::control {

class Member {
 public:
  /// Joins the world; waits for nobody but rank 0. Errors: TransportError.
  Member(Launch launch, Clock::time_point deadline);
  /// Takes its leave: the others are told that this rank has ended.
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// See Transport::allgather. Calls `move_on` again and again while it waits.
  std::vector<std::string> allgather(std::string_view mine, Clock::time_point deadline,
                                     const std::function<void()>& move_on);

  /// A rank that has ended, if one has. A system call.
  std::optional<int> dead();
  bool is_dead(int rank);

 private:
  void join(const Launch& launch, Clock::time_point deadline);
  void look();
  void note_ended(int rank, std::uint64_t contributions);
  void throw_if_hopeless() const;
  void give_up(Clock::duration waited, const std::function<void()>& move_on);

  int rank_, size_;
  std::unique_ptr<Pmix> session_;   // until all have come to a collective call
  std::unique_ptr<Stream> stream_;  // to the hub; none in a world of one
  bool is_hub_gone_ = false;
  std::uint64_t calls_ = 0;  // collective calls in which this rank took part
  std::optional<std::string> gathered_;
  std::string given_up_;
  struct Ended {
    std::uint64_t contributions;
    Clock::time_point heard;
  };
  std::map<int, Ended> ended_;
  std::optional<int> first_ended_;
};

}  // namespace kplan::transport::control
