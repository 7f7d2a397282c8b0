// How it works: contents are a function of rank, array, element and seed, so that any rank knows what any other holds.
// Sums of small whole numbers are exact, whatever the order in which they are made.
#include "tools/bench/exchange/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/bench/aligned_memory.hpp"

namespace kplan::bench {

std::uint32_t number_at(int rank, int array, std::int64_t element, unsigned seed) {
  std::uint64_t h = static_cast<std::uint64_t>(element) * 0x9E3779B97F4A7C15u;
  h ^= (static_cast<std::uint64_t>(rank) * 1000003 + static_cast<std::uint64_t>(array) * 10007 + seed) *
       0xD1B54A32D192ED03u;
  h ^= h >> 29;
  h *= 0x94D049BB133111EBu;
  return static_cast<std::uint32_t>(h >> 52);
}

namespace {

void fill_array(const Array& array, int rank, int number, unsigned seed) {
  with_numbers(array, [&](auto numbers) {
    for (std::size_t k = 0; k < numbers.size(); ++k)
      numbers[k] =
          static_cast<decltype(numbers)::value_type>(number_at(rank, number, static_cast<std::int64_t>(k), seed));
  });
}

/// The first number that is not what fill_array has written, -1 when there is none.
std::int64_t first_changed(const Array& array, int rank, int number, unsigned seed) {
  return with_numbers(array, [&](auto numbers) -> std::int64_t {
    for (std::size_t k = 0; k < numbers.size(); ++k)
      if (numbers[k] !=
          static_cast<decltype(numbers)::value_type>(number_at(rank, number, static_cast<std::int64_t>(k), seed)))
        return static_cast<std::int64_t>(k);
    return -1;
  });
}

}  // namespace

Scalar Exchange::wire_type() const {
  const auto type_of = [&](const Region& region) {
    return arrays[static_cast<std::size_t>(std::visit([](const auto& p) { return p.array; }, region.at(0)))].type;
  };
  if (!sends.empty()) return type_of(sends[0].mine);
  return receives.empty() ? Scalar::f64 : type_of(receives[0].theirs);
}

bool Exchange::stores_as_sent() const {
  if (combine != Combine::assign) return false;
  return std::ranges::all_of(receives, [&](const Link& l) {
    return std::ranges::all_of(l.mine, [&](const Piece& piece) {
      const int array = std::visit([](const auto& p) { return p.array; }, piece);
      return size_of(arrays[static_cast<std::size_t>(array)].type) == size_of(wire_type());
    });
  });
}

std::size_t Exchange::bytes_sent() const {
  std::int64_t elements = 0;
  for (const Link& l : sends) elements += element_count(l.mine);
  return static_cast<std::size_t>(elements) * size_of(wire_type());
}

Exchange fused(const Exchange& exchange) {
  Exchange out = exchange;
  for (std::vector<Link>* links : {&out.sends, &out.receives}) {
    std::ranges::stable_sort(*links, {}, [](const Link& l) { return std::pair(l.peer, l.tag); });
    std::vector<Link> merged;
    for (Link& l : *links) {
      if (merged.empty() || merged.back().peer != l.peer) {
        merged.push_back(std::move(l));
        merged.back().tag = 0;
        continue;
      }
      merged.back().mine.insert(merged.back().mine.end(), l.mine.begin(), l.mine.end());
      merged.back().theirs.insert(merged.back().theirs.end(), l.theirs.begin(), l.theirs.end());
    }
    *links = std::move(merged);
  }
  return out;
}

std::vector<std::shared_ptr<std::byte>> allocate(Exchange& exchange) {
  std::vector<std::shared_ptr<std::byte>> out;
  for (Array& array : exchange.arrays) {
    if (exchange.team.transport) {
      out.push_back(exchange.team.transport->allocate(array.size_bytes()));
    } else {
      const auto memory = std::make_shared<AlignedMemory>(array.size_bytes());
      out.emplace_back(memory, memory->data());
    }
    array.data = out.back().get();
  }
  return out;
}

void fill(const Exchange& exchange, unsigned seed) {
  for (std::size_t a = 0; a < exchange.arrays.size(); ++a)
    fill_array(exchange.arrays[a], exchange.team.rank, static_cast<int>(a), seed);
}

std::string change(const Exchange& exchange, unsigned seed) {
  for (std::size_t a = 0; a < exchange.arrays.size(); ++a) {
    const Array& array = exchange.arrays[a];
    const std::int64_t at = first_changed(array, exchange.team.rank, static_cast<int>(a), seed);
    if (at >= 0) return fmt::format("rank {}: array {} was written at number {}", exchange.team.rank, a, at);
  }
  return "";
}

}  // namespace kplan::bench
