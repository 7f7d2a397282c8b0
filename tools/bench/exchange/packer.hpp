#pragma once
// Packing and unpacking by hand-written loops, chosen once for a region.

#include <functional>

#include "tools/bench/exchange/exchange.hpp"
#include "tools/bench/exchange/loops.hpp"

namespace kplan::bench {

/// A nest of at most four loops, simplified before, as the hand-written loops take it.
loops::Walk walk_of(const Nest& nest, const Array& array);

/// How loops are written: with all that an expert knows (short rows of constant length, tiles, runs in lists of
/// indices), or as they come to mind.
enum class Care : std::uint8_t { expert, plain };

/// What packs a walk, and what stores or adds the message.
struct Loops {
  void (*pack)(const loops::Walk&, std::byte*) = nullptr;
  void (*unpack)(const loops::Walk&, const std::byte*) = nullptr;
};

/// The loops of one region of this rank's arrays.
class Packer {
 public:
  /// `wire` is the type that travels; regions that are only packed have it themselves.
  Packer(const Region& region, const std::vector<Array>& arrays, Scalar wire, Combine combine,
         Care care = Care::expert);

  void pack(std::byte* message) const {
    for (const Step& s : steps_) s.loops.pack(s.walk, message + s.offset_bytes);
  }
  void unpack(const std::byte* message) const {
    for (const Step& s : steps_) s.loops.unpack(s.walk, message + s.offset_bytes);
  }
  std::size_t message_bytes() const { return message_bytes_; }

  /// Other loops for all walks, each of elements of type `place`. False where one has nothing for `side`: then it is
  /// of no use any more.
  template <class Side>
  bool replace(Side Loops::*side, const std::function<Loops(const loops::Walk&, Scalar place)>& chosen) {
    for (Step& s : steps_) s.loops = chosen(s.walk, s.type);
    return std::ranges::all_of(steps_, [&](const Step& s) { return s.loops.*side != nullptr; });
  }

 private:
  struct Step {
    loops::Walk walk;
    Scalar type = Scalar::f64;
    Loops loops;
    std::size_t offset_bytes = 0;
  };
  Region region_;  ///< the steps point into its index lists
  std::vector<Step> steps_;
  std::size_t message_bytes_ = 0;
};

/// Moves what stays on this rank: by loops from place to place where both regions have the same shape, else through a
/// buffer.
class Mover {
 public:
  Mover(const Link& local, const Exchange& exchange);
  void move();

 private:
  struct Rows {
    loops::Walk to, from;
    void (*move)(const loops::Walk& to, const loops::Walk& from) = nullptr;
  };
  bool add_rows(const Link& local, const Exchange& exchange);
  std::vector<Rows> rows_;
  std::vector<Packer> staged_;  ///< what reads, what writes
  std::vector<std::byte> stage_;
};

}  // namespace kplan::bench
