// How it works: contents are a function of rank, array, element and seed, so that any rank knows what any other holds.
// Sums of small whole numbers are exact, whatever the order in which they are made.
#include "tools/bench/exchange/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

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

template <class T>
void fill_as(std::byte* data, std::int64_t count, int rank, int array, unsigned seed) {
  T* elements = reinterpret_cast<T*>(data);
  for (std::int64_t k = 0; k < count; ++k) elements[k] = static_cast<T>(number_at(rank, array, k, seed));
}

void fill_array(const Array& array, std::byte* data, int rank, int number, unsigned seed) {
  const std::int64_t count = array.element_count();
  switch (array.type) {
    case Scalar::f32: return fill_as<float>(data, count, rank, number, seed);
    case Scalar::f64: return fill_as<double>(data, count, rank, number, seed);
    case Scalar::c128: return fill_as<double>(data, 2 * count, rank, number, seed);
    case Scalar::i64: return fill_as<std::int64_t>(data, count, rank, number, seed);
    default: return fill_as<std::uint8_t>(data, count, rank, number, seed);
  }
}

/// What `theirs` holds on `peer`, applied to an element of this rank's.
void apply(const Exchange& e, const Element& mine, const Element& theirs, int peer, unsigned seed, std::byte* data) {
  const auto number = static_cast<std::size_t>(mine.number);
  const Scalar type = e.arrays[static_cast<std::size_t>(mine.array)].type;
  const auto value = [&](std::int64_t element) { return number_at(peer, theirs.array, element, seed); };
  const bool adds = e.combine == Combine::sum;
  if (type == Scalar::f64) {
    double& place = reinterpret_cast<double*>(data)[number];
    place = value(theirs.number) + (adds ? place : 0);
  } else if (type == Scalar::f32) {
    float& place = reinterpret_cast<float*>(data)[number];
    place = static_cast<float>(value(theirs.number)) + (adds ? place : 0);
  } else if (type == Scalar::c128) {
    for (std::size_t part = 0; part < 2; ++part)
      reinterpret_cast<double*>(data)[2 * number + part] = value(2 * theirs.number + static_cast<std::int64_t>(part));
  } else if (type == Scalar::i64) {
    reinterpret_cast<std::int64_t*>(data)[number] = value(theirs.number);
  } else {
    data[number] = static_cast<std::byte>(value(theirs.number));
  }
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
    fill_array(exchange.arrays[a], exchange.arrays[a].data, exchange.team.rank, static_cast<int>(a), seed);
}

std::string difference(const Exchange& exchange, unsigned seed) {
  std::vector<std::vector<std::byte>> expected;
  for (std::size_t a = 0; a < exchange.arrays.size(); ++a) {
    expected.emplace_back(exchange.arrays[a].size_bytes());
    fill_array(exchange.arrays[a], expected[a].data(), exchange.team.rank, static_cast<int>(a), seed);
  }
  for (const Link& l : exchange.receives) {
    const std::vector<Element> mine = elements_of(l.mine), theirs = elements_of(l.theirs);
    for (std::size_t k = 0; k < mine.size(); ++k)
      apply(exchange, mine[k], theirs.at(k), l.peer, seed, expected[static_cast<std::size_t>(mine[k].array)].data());
  }
  for (std::size_t a = 0; a < expected.size(); ++a) {
    const Array& array = exchange.arrays[a];
    if (std::memcmp(expected[a].data(), array.data, expected[a].size()) == 0) continue;
    const auto at =
        std::ranges::mismatch(expected[a], std::span(array.data, expected[a].size())).in1 - expected[a].begin();
    return fmt::format("rank {}: array {} is wrong at element {}", exchange.team.rank, a,
                       static_cast<std::size_t>(at) / size_of(array.type));
  }
  return "";
}

}  // namespace kplan::bench
