// How it works: an element of complex type is two numbers. Only sums have several arrivals in one place.
#include "tools/bench/exchange/moved_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kplan::bench {
namespace {

std::vector<Element> numbers_of(const Region& region, const std::vector<Array>& arrays) {
  std::vector<Element> out;
  for (const Element& element : elements_of(region)) {
    if (arrays[static_cast<std::size_t>(element.array)].type != Scalar::c128) {
      out.push_back(element);
      continue;
    }
    for (const std::int64_t part : {0, 1}) out.push_back({element.array, 2 * element.number + part});
  }
  return out;
}

bool is_same(const Element& a, const Element& b) { return a.array == b.array && a.number == b.number; }

void store(const Exchange& e, const Element& at, std::uint32_t value) {
  with_numbers(e.arrays[static_cast<std::size_t>(at.array)], [&](auto numbers) {
    numbers[static_cast<std::size_t>(at.number)] = static_cast<decltype(numbers)::value_type>(value);
  });
}

bool holds(const Exchange& e, const Element& at, std::uint32_t value) {
  return with_numbers(e.arrays[static_cast<std::size_t>(at.array)], [&](auto numbers) {
    return numbers[static_cast<std::size_t>(at.number)] == static_cast<decltype(numbers)::value_type>(value);
  });
}

}  // namespace

MovedNumbers::MovedNumbers(std::shared_ptr<const Exchange> exchange) : exchange_(std::move(exchange)) {
  const Exchange& e = *exchange_;
  for (const Link& l : e.sends) std::ranges::copy(numbers_of(l.mine, e.arrays), std::back_inserter(sent_));
  for (const Link& l : e.receives) {
    const std::vector<Element> places = numbers_of(l.mine, e.arrays), sources = numbers_of(l.theirs, e.arrays);
    for (std::size_t k = 0; k < places.size(); ++k) arrivals_.push_back({places[k], l.peer, sources.at(k)});
    if (l.peer == e.team.rank) std::ranges::copy(sources, std::back_inserter(sent_));
  }
  if (e.combine == Combine::sum)
    std::ranges::sort(arrivals_, {}, [](const Arrival& a) { return std::pair(a.place.array, a.place.number); });
}

void MovedNumbers::fill_sent(unsigned seed) const {
  const Exchange& e = *exchange_;
  for (const Element& s : sent_) store(e, s, number_at(e.team.rank, s.array, s.number, seed));
}

void MovedNumbers::fill_places(unsigned seed) const {
  const Exchange& e = *exchange_;
  for (const Arrival& a : arrivals_) store(e, a.place, number_at(e.team.rank, a.place.array, a.place.number, seed));
}

std::string MovedNumbers::difference(unsigned seed) const {
  const Exchange& e = *exchange_;
  for (std::size_t k = 0; k < arrivals_.size();) {
    const Element place = arrivals_[k].place;
    std::uint32_t expected = e.combine == Combine::sum ? number_at(e.team.rank, place.array, place.number, seed) : 0;
    for (; k < arrivals_.size() && is_same(arrivals_[k].place, place); ++k)
      expected += number_at(arrivals_[k].peer, arrivals_[k].source.array, arrivals_[k].source.number, seed);
    if (!holds(e, place, expected))
      return fmt::format("rank {}: array {} is wrong at number {} of contents {}", e.team.rank, place.array,
                         place.number, seed);
  }
  return "";
}

}  // namespace kplan::bench
