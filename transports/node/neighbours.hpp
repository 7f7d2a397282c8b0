#pragma once
// Which ranks are processes of this node that share memory with this one, and whether they are still alive.

#include <optional>
#include <vector>

#include "kplan/transport.hpp"

namespace kplan::transport::node_path {

class Neighbours {
 public:
  /// Collective: finds out by trying. Two ranks are neighbours when each could open the other's memory. `shares`:
  /// whether this rank wants any.
  Neighbours(Transport& transport, bool shares, Clock::time_point deadline);
  ~Neighbours();
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  bool is_here(int rank) const { return processes_[static_cast<std::size_t>(rank)] != 0; }
  /// Whether that rank can copy from this one's memory, whatever memory that is.
  bool is_copied_by(int rank) const { return is_copied_by_[static_cast<std::size_t>(rank)]; }
  int process(int rank) const { return processes_[static_cast<std::size_t>(rank)]; }
  /// Neighbours, this rank among them.
  int count() const { return count_; }
  /// As many as no rank has more of; the same on all ranks.
  int most() const { return most_; }
  /// Whether somewhere neighbours are more than the cores that they can have; the same on all ranks.
  bool share_cores() const { return share_cores_; }

  /// The shortest pieces that any rank is set to; the same on all ranks.
  std::size_t piece_bytes() const { return piece_bytes_; }

  /// A neighbour whose process has ended, if one has. A system call.
  std::optional<int> dead();
  bool is_dead(int rank);

 private:
  void watch(int rank);

  int rank_, count_ = 1, most_ = 1;
  std::size_t piece_bytes_ = SIZE_MAX;
  bool share_cores_ = false;
  std::vector<int> processes_;  ///< by rank; 0: not here
  std::vector<bool> is_dead_, is_copied_by_;
  std::vector<int> files_;  ///< pidfds, by rank; -1: none
  int poll_ = -1;
  std::optional<int> first_dead_;
};

}  // namespace kplan::transport::node_path
