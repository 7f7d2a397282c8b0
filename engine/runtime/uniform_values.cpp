#include "engine/runtime/uniform_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "engine/analysis/knowledge.hpp"

namespace kplan {
namespace {

constexpr std::size_t word_bytes = sizeof(std::uint64_t);

/// Of which there are many, equal to none.
bool is_no_number(const ScalarValue& value) {
  const auto is_in = [&]<class T>(T) {
    T parts[2] = {};
    std::memcpy(parts, value.bits, size_of(value.type));
    return std::isnan(parts[0]) || std::isnan(parts[1]);
  };
  switch (value.type) {
    case Scalar::f32:
    case Scalar::c64: return is_in(float{});
    case Scalar::f64:
    case Scalar::c128: return is_in(double{});
    default: return false;
  }
}

}  // namespace

std::vector<int> ring_neighbours(int rank, int size) {
  if (size == 1) return {};
  std::vector<int> out{(rank + 1) % size, (rank + size - 1) % size};
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

UniformValues::UniformValues(const PlanModel& plan) : plan_(plan) {
  std::size_t size = 0;
  for (const int number : uniform_varying_parameters(plan)) {
    const auto p = static_cast<std::size_t>(number);
    const Scalar type = plan.parameters[p].type;
    parts_.push_back({p, (size_of(type) + word_bytes - 1) / word_bytes, is_real(type) || is_complex(type)});
    size += parts_.back().words;
  }
  words_.resize(size);
}

[[gnu::hot]] void UniformValues::read(const BoundPlan& bound) {
  std::uint64_t* to = words_.data();
  for (const Part& part : parts_) {
    const ScalarValue& value = bound.state.parameters[part.parameter];
    const bool is_any = part.may_be_no_number && is_no_number(value);
    for (std::size_t k = 0; k < part.words; ++k)
      *to++ = is_any ? std::numeric_limits<std::uint64_t>::max() : value.bits[k];
  }
}

std::exception_ptr UniformValues::difference(std::uint64_t run, UniformWords one, UniformWords other) const {
  if (one.rank > other.rank) std::swap(one, other);
  std::size_t at = 0;
  for (const Part& part : parts_) {
    const Parameter& p = plan_.parameters[part.parameter];
    const auto words = [&](const UniformWords& of) { return of.words.subspan(at, part.words); };
    if (!std::ranges::equal(words(one), words(other))) {
      const auto text_of = [&](const UniformWords& of) {
        ScalarValue value{p.type, {}};
        std::ranges::copy(words(of), value.bits);
        return to_text(value);
      };
      return std::make_exception_ptr(PlanError(
          "KP-A002", fmt::format("plan {}: uniform parameter `{}` was set to {} on rank {} and to {} on rank {}, for "
                                 "run {}; set it alike on all ranks",
                                 plan_.name, p.name, text_of(one), one.rank, text_of(other), other.rank, run)));
    }
    at += part.words;
  }
  return nullptr;
}

}  // namespace kplan
