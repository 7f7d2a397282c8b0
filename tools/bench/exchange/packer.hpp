#pragma once
// Packing and unpacking by hand-written loops, chosen once for a region.

#include "tools/bench/exchange/exchange.hpp"
#include "tools/bench/exchange/loops.hpp"

namespace kplan::bench {

/// A nest of at most four loops, simplified before, as the hand-written loops take it.
loops::Walk walk_of(const Nest& nest, const Array& array);

/// How loops are written: with all that an expert knows (short rows of constant length, tiles, runs in lists of
/// indices), or as they come to mind.
enum class Care : std::uint8_t { expert, plain };

/// The loops of one region of this rank's arrays.
class Packer {
 public:
  /// `wire` is the type that travels; regions that are only packed have it themselves.
  Packer(const Region& region, const std::vector<Array>& arrays, Scalar wire, Combine combine,
         Care care = Care::expert);

  void pack(std::byte* message) const {
    for (const Step& s : steps_) s.pack(s.walk, message + s.offset_bytes);
  }
  void unpack(const std::byte* message) const {
    for (const Step& s : steps_) s.unpack(s.walk, message + s.offset_bytes);
  }
  std::size_t message_bytes() const { return message_bytes_; }

 private:
  struct Step {
    loops::Walk walk;
    void (*pack)(const loops::Walk&, std::byte*) = nullptr;
    void (*unpack)(const loops::Walk&, const std::byte*) = nullptr;
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
