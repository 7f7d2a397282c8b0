#pragma once
// One buffer with a part for each of a list of links, as MPI's collective calls take it; or the arrays themselves,
// where all regions lie in one piece.

#include "tools/bench/aligned_memory.hpp"
#include "tools/bench/exchange/packer.hpp"

namespace kplan::bench {

class PackedParts {
 public:
  enum class Side : std::uint8_t { sends, receives };
  /// Parts in the order of the peers given; those without a link are empty.
  PackedParts(const Exchange& exchange, Side side, const std::vector<int>& peers);

  void pack() const;
  void unpack() const;

  std::byte* data = nullptr;
  std::vector<int> counts, offsets;  ///< in elements of the wire's type

 private:
  bool lies_in_place(const Exchange& exchange, Side side, const std::vector<const Link*>& links);
  std::vector<std::pair<Packer, std::size_t>> packers_;  ///< with the part's first byte
  AlignedMemory memory_;
};

/// The peers of links with others, ascending, each once.
std::vector<int> peers_of(const Exchange& exchange, const std::vector<Link>& links);

}  // namespace kplan::bench
