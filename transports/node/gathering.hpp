#pragma once
// All-gathers between ranks that all share memory: each writes what it brings into memory of its own, where the others
// read it. Some tens of times faster than a collective call of MPI, or of the star of connections under libfabric.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transports/node/neighbours.hpp"
#include "transports/node/segment.hpp"

namespace kplan::transport::node_path {

class Gathering {
 public:
  /// Collective, by the base transport; all its ranks are neighbours. Errors: TransportError.
  Gathering(Transport& base, const Neighbours& neighbours, Clock::time_point deadline);

  /// Begins the next one, when the one before it was taken. `is_free`: this rank's answer beside what it brings.
  void begin(std::string_view mine, bool is_free);
  /// Whether all ranks have begun it. Never blocks.
  bool is_complete();
  bool has_begun(int rank) const;
  /// Ranks that have not begun it, ascending.
  std::vector<int> waits_for() const;
  /// What they brought, in rank order, once it is complete. Nothing where some rank has brought more than most_bytes:
  /// all ranks get nothing then.
  std::optional<std::vector<std::string>> take();
  /// Whether all ranks were free in the last one that was taken.
  bool were_all_free() const { return were_all_free_; }

  /// Tells all ranks that this one waits no longer, and why; whoever looks later is told, too.
  void give_up(std::string_view why);
  /// Why the first of the ranks that gave up did; empty if none has.
  std::string given_up() const;

  static constexpr std::size_t most_bytes = 16384 - 64;

 private:
  struct Part;
  struct Memory;
  Memory& memory(int rank) const;
  Part& part(int rank) const;

  int rank_;
  std::uint64_t number_ = 0;  ///< of the gathering that is under way, or was the last
  int came_ = 0;              ///< the ranks before it have begun that
  bool were_all_free_ = false;
  std::vector<std::shared_ptr<Segment>> segments_;  ///< by rank
};

}  // namespace kplan::transport::node_path
