#pragma once
// Which way the messages of a plan that may be placed go. Both ends of one had better go the same way, and neither sees
// how the other does (faces of 64^3 over MPI, split z: 38 us in place, 85 packed, 89 one of each). So each rank tells
// the higher ones that it exchanges such messages with, when it begins to go another way, and they follow: see
// RunTrials.

#include <memory>
#include <optional>
#include <vector>

#include "kplan/transport.hpp"

namespace kplan {

class PlacedWays {
 public:
  static constexpr int slots = 4;
  static constexpr std::size_t message_bytes = 1;

  /// One end of a channel between two ranks: from the lower to the higher one.
  struct End {
    int rank = 0;  ///< the other one
    std::unique_ptr<transport::Channel> channel = nullptr;
    std::uint64_t next = 0;         ///< message
    std::optional<bool> told = {};  ///< the last one; null: none yet
  };
  /// Ranks below this one, and above, whose channels are to be opened.
  std::vector<End>& below() { return below_; }
  std::vector<End>& above() { return above_; }

  /// Calls f(rank, goes_in_place) for what has come, in order.
  template <class F>
  void take(const F& f) {
    for (End& from : below_)
      while (const std::byte* const message = from.channel->arrived(from.next)) {
        f(from.rank, *message != std::byte{0});
        from.channel->release(from.next++);
      }
  }
  /// This rank's messages go that way from now on. To be called in every run: whoever has not taken what was told
  /// before is told later.
  void tell(bool goes_in_place) {
    for (End& to : above_) {
      if (to.told == goes_in_place) continue;
      std::byte* const message = to.channel->send_slot(to.next);
      if (!message) continue;
      *message = std::byte{goes_in_place};
      to.channel->put(to.next++, message_bytes);
      to.told = goes_in_place;
    }
  }

 private:
  std::vector<End> below_, above_;
};

}  // namespace kplan
