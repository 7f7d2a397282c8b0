#pragma once
// The loop nest of one call with all its numbers known: literals, arguments and lists brought together, loops of one
// turn dropped, loops that continue each other made one. Of fixed size, so that it lives on the stack.

#include <cstdint>

#include "jit/kernel_spec.hpp"

namespace kplan::jit {

/// What the turns of the list loop add to a track, from one of them on.
struct TrackList {
  const ListEntry* entries = nullptr;  ///< null: nothing
  std::uint64_t scale = 1;

  explicit operator bool() const { return entries != nullptr; }
  std::uint64_t operator[](std::int64_t turn) const { return scale * entries[turn]; }
  TrackList from(std::int64_t turn) const { return {entries == nullptr ? nullptr : entries + turn, scale}; }
};

/// What moves along the nest is a track: a stream's address, or a number that is linear in the position.
struct NumericNest {
  static constexpr int most_loops = 9;
  static constexpr int most_tracks = 64;

  int loop_count = 0;
  int track_count = 0;
  int stream_count = 0;   ///< the first tracks are the streams' addresses
  int list_loop = -1;     ///< the loop over the lists; -1: none
  bool is_empty = false;  ///< some loop has no turn
  std::int64_t extents[most_loops];
  std::uint64_t strides[most_loops][most_tracks];  ///< loops outermost first
  std::uint64_t starts[most_tracks];
  TrackList lists[most_tracks];

  /// The spec's loops and its streams' tracks. A spec has at most `most_tracks` streams here.
  NumericNest(const KernelSpec& spec, const KernelArguments& arguments);

  /// Adds a number's track: its strides by the spec's dimensions, and along the lists.
  void add_number(std::uint64_t start, const std::int64_t* strides_by_dimension, std::uint64_t list_stride);
  /// Adds the number of the iteration in the nest's order, from 0.
  void add_iteration();

  /// Drops and fuses loops, all tracks being there. The order of iterations stays.
  void simplify();
  /// Takes the contiguous innermost loops of a copy's two streams away; returns the bytes of the run that they are.
  std::int64_t take_run(std::int64_t bytes);
  /// Moves the loop with the nearest elements innermost. For iterations in any order.
  void choose_inner();

  /// The innermost loop; there is one after `simplify`.
  int inner() const { return loop_count - 1; }
  TrackList inner_list(int track) const { return list_loop == inner() ? lists[track] : TrackList(); }

 private:
  void drop(int loop);
  bool continues(int loop) const;
};

namespace detail {

template <class Row>
bool rows_below(const NumericNest& nest, int loop, const std::uint64_t* at, const Row& row) {
  if (loop == nest.inner()) return row(at);
  std::uint64_t here[NumericNest::most_tracks];
  const auto* strides = nest.strides[loop];
  for (std::int64_t turn = 0; turn < nest.extents[loop]; ++turn) {
    for (int t = 0; t < nest.track_count; ++t) here[t] = at[t] + static_cast<std::uint64_t>(turn) * strides[t];
    if (loop == nest.list_loop) {
      for (int t = 0; t < nest.track_count; ++t) {
        if (nest.lists[t]) here[t] += nest.lists[t][turn];
      }
    }
    if (!rows_below(nest, loop + 1, here, row)) return false;
  }
  return true;
}

}  // namespace detail

/// Calls row(where the tracks are) for each row of the innermost loop, in the nest's order, until it returns false.
template <class Row>
void for_each_row(const NumericNest& nest, const Row& row) {
  if (!nest.is_empty) detail::rows_below(nest, 0, nest.starts, row);
}

}  // namespace kplan::jit
