// How it works: elements are collected in blocks, places gathered, the function called on the block, places scattered
// again. A place that is met twice ends a block, so that the second sees what the first has made of it.
#include "engine/runtime/native_reduction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "plans/diagnostic.hpp"

namespace kplan {
namespace {

constexpr std::size_t block_elements = 256;

}  // namespace

std::shared_ptr<const NativeOperator> find_operator(const NativeOperators& operators, const PlanModel& plan,
                                                    const Statement& s, const Reduction& r) {
  const auto it = operators.find(r.operator_name);
  if (it != operators.end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [name, op] : operators) names.push_back(name);
  throw PlanError("KP-B030",
                  fmt::format("plan {}, statement {}: the operator `{}` is a C++ function, and none is registered by "
                              "that name{}; call engine.register_operator(\"{}\", ...) before compile",
                              plan.name, s.name, r.operator_name, suggestion(r.operator_name, names), r.operator_name));
}

NativeReduction::NativeReduction(const Reduction& r, std::shared_ptr<const NativeOperator> op, const Piece& piece)
    : op_(std::move(op)),
      place_scalar_(r.place_type.scalar),
      value_scalar_(r.value_type.scalar),
      is_converted_(!r.place_type.is_record() && r.place_type.scalar != r.value_type.scalar),
      place_bytes_(r.place_type.size_bytes),
      value_bytes_(r.value_type.size_bytes),
      gathered_(block_elements * place_bytes_),
      values_(block_elements * place_bytes_) {
  walk(piece, piece.tracks[0], [&](std::int64_t p) { return places_.push_back(p), true; });
  walk(piece, piece.tracks[1], [&](std::int64_t p) { return sources_.push_back(p), true; });
  std::set<std::int64_t> block;
  for (std::size_t k = 0; k < places_.size(); ++k) {
    if (block.size() == block_elements || block.contains(places_[k])) {
      block_ends_.push_back(k);
      block.clear();
    }
    block.insert(places_[k]);
  }
  if (!places_.empty()) block_ends_.push_back(places_.size());
}

void NativeReduction::operator()(std::byte* places, const std::byte* message) {
  std::size_t first = 0;
  for (const std::size_t end : block_ends_) {
    for (std::size_t k = first; k < end; ++k) {
      std::byte *place = gathered_.data() + (k - first) * place_bytes_,
                *value = values_.data() + (k - first) * place_bytes_;
      std::memcpy(place, places + places_[k], place_bytes_);
      if (is_converted_) convert(ScalarValue::load(value_scalar_, message + sources_[k]), place_scalar_).store(value);
      else std::memcpy(value, message + sources_[k], value_bytes_);
    }
    (*op_)(gathered_.data(), values_.data(), end - first);
    for (std::size_t k = first; k < end; ++k)
      std::memcpy(places + places_[k], gathered_.data() + (k - first) * place_bytes_, place_bytes_);
    first = end;
  }
}

}  // namespace kplan
