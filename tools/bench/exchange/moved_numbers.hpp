#pragma once
// What takes part in an exchange on this rank, number by number: cheap to write and to compare where arrays are large,
// so that many runs can follow each other with other contents each.

#include <memory>

#include "tools/bench/exchange/exchange.hpp"

namespace kplan::bench {

class MovedNumbers {
 public:
  explicit MovedNumbers(std::shared_ptr<const Exchange> exchange);

  /// What fill(exchange, seed) writes, of what is sent, and of what is received into.
  void fill_sent(unsigned seed) const;
  void fill_places(unsigned seed) const;
  /// Compares what is received into with what one exchange must make of both. Empty, or what is wrong where.
  std::string difference(unsigned seed) const;

 private:
  struct Arrival {
    Element place;
    int peer;
    Element source;  ///< there
  };
  std::shared_ptr<const Exchange> exchange_;
  std::vector<Element> sent_;
  std::vector<Arrival> arrivals_;  ///< those into one place one after the other
};

}  // namespace kplan::bench
