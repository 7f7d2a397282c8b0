#pragma once
// An exchange between ranks whose pattern stays: what this rank sends to whom and what it receives from whom, told from
// both ends, so that what must be in the arrays afterwards can be worked out without any message.

#include <span>
#include <string>

#include "tools/bench/exchange/region.hpp"
#include "tools/bench/team.hpp"

namespace kplan::bench {

/// One message, or what stays on this rank.
struct Link {
  int peer = 0;
  int tag = 0;    ///< orders the messages between two ranks; the same at both ends
  Region mine;    ///< sent from here, or received here
  Region theirs;  ///< at the other end, in the same order
};

enum class Combine : std::uint8_t { assign, sum };

/// Links with this rank itself are local copies; they stand among the receives only.
struct Exchange {
  Team team;
  std::vector<Array> arrays = {};
  std::vector<Link> sends = {}, receives = {};
  Combine combine = Combine::assign;
  /// An element that is received into is sent, too: nothing may be written before all is read.
  bool reads_what_it_writes = false;

  /// The type that travels: that of the arrays that are sent from.
  Scalar wire_type() const;
  /// Whether what arrives is stored as it is.
  bool stores_as_sent() const;
  /// What this rank sends to others in one exchange.
  std::size_t bytes_sent() const;
};

/// The same exchange with one message for each peer: regions in the order of their tags.
Exchange fused(const Exchange& exchange);

/// Allocates the arrays from a page's start, and returns what keeps them: memory that kplan's ranks on one node share,
/// where there are such ranks.
std::vector<std::shared_ptr<std::byte>> allocate(Exchange& exchange);

/// A whole number from 0 to 4095: what fill() writes there. Of complex elements it is two, numbered on their own.
std::uint32_t number_at(int rank, int array, std::int64_t number, unsigned seed);

/// Calls f with the numbers of an array as a span of their type: its elements, of complex ones both parts.
template <class F>
auto with_numbers(const Array& array, F f) {
  const auto as = [&]<class T>(T) {
    return f(std::span(reinterpret_cast<T*>(array.data), array.size_bytes() / sizeof(T)));
  };
  switch (array.type) {
    case Scalar::f32: return as(float{});
    case Scalar::f64:
    case Scalar::c128: return as(double{});
    case Scalar::i64: return as(std::int64_t{});
    default: return as(std::uint8_t{});
  }
}

/// Fills all arrays with small whole numbers, another for every rank, array, element and seed.
void fill(const Exchange& exchange, unsigned seed);

/// Empty, or where the arrays do not hold what fill(seed) wrote.
std::string change(const Exchange& exchange, unsigned seed);

}  // namespace kplan::bench
