#pragma once
// A workload: an exchange with a name, on memory that all methods share, and the methods that can do it.

#include "tools/bench/methods/kplan_method.hpp"

namespace kplan::bench {

/// An exchange as kplan gets it: a plan, values, and the names of the exchange's arrays in it.
struct Planned {
  Plan plan;
  Values values;
  std::vector<std::string> names;
};

/// What a rank's memory holds before a run, another for every seed, and what one run must make of it.
struct Contents {
  std::function<void(unsigned seed)> fill;
  /// Empty, or what differs from what one run must make of fill(seed).
  std::function<std::string(unsigned seed)> difference;
};

/// A workload made on the ranks of a team.
struct Case {
  std::size_t bytes = 0;  ///< that this rank sends to others
  Contents whole;         ///< all memory, so that stray writes are seen
  Contents moved;         ///< what takes part only, of which many can follow each other; null: `whole` is small
  std::function<void(unsigned seed)> rewrite;  ///< writes what this rank sends, and nothing else
  int peers = 0, messages = 0;                 ///< that this rank sends to others, before any are fused
  int turns = 1;                               ///< after so many runs patterns come again
  std::vector<Method> methods;                 ///< kplan first
  std::shared_ptr<void> memory;
  /// Of patterns that stay; null for others.
  std::shared_ptr<const Exchange> exchange;
  std::shared_ptr<const Planned> planned;
};

struct Workload {
  std::string name;
  std::vector<int> ranks;  ///< counts that it asks for; empty: all there are
  std::function<Case(const Team& team)> make;
};

/// All of them, in the order in which they are reported.
std::vector<Workload> all_workloads();

/// The case of an exchange whose pattern stays: allocates its arrays, binds them to the plan and adds all alternatives.
/// `block`: elements that always go together. Collective over nobody, so that a team may be imagined.
Case case_of(Exchange exchange, Planned planned, int block = 1);

/// The ghost gather of so many entries from the other ranks together.
Case ghost_gather(const Team& team, std::int64_t entries, bool is_sorted);

// The families, one file each.
void add_kanor(std::vector<Workload>& to);
void add_halos(std::vector<Workload>& to);
void add_fields(std::vector<Workload>& to);
void add_transposes(std::vector<Workload>& to);
void add_redistributions(std::vector<Workload>& to);
void add_ghosts(std::vector<Workload>& to);
void add_particles(std::vector<Workload>& to);
void add_finite_elements(std::vector<Workload>& to);
void add_conversions(std::vector<Workload>& to);
void add_dynamic(std::vector<Workload>& to);
void add_sweeps(std::vector<Workload>& to);
void add_collectives(std::vector<Workload>& to);

}  // namespace kplan::bench
