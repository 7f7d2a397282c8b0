// How it works: what is joined is a reduction like the first of its fields, with values and places that are as many
// bytes as all of them. Only where nothing else of the statement touches the place's buffer, so that what is assigned
// twice is still found.
#include "engine/analysis/joined_fields.hpp"

#include <algorithm>

#include "engine/analysis/expressions.hpp"

namespace kplan {
namespace {

/// A field that is moved as it is.
bool moves_field(const Reduction& r) {
  return r.is_assign && !r.is_native && r.value->kind == ExprKind::element && r.value->field >= 0 &&
         r.place->field >= 0 && r.value_type == r.place_type && !r.value_type.is_record();
}

/// Whether `next` moves the fields behind those of `first`, `bytes` long, of the same elements.
bool continues(const Reduction& first, std::size_t bytes, const Reduction& next) {
  const auto follows = [bytes](const Expr& a, const Expr& b) {
    return a.id == b.id && b.field_offset_bytes == a.field_offset_bytes + bytes && have_same_subscripts(a, b);
  };
  return moves_field(next) && follows(*first.place, *next.place) && follows(*first.value, *next.value) &&
         are_same(first.sender, next.sender) && are_same(first.receiver, next.receiver);
}

std::vector<Reduction> joined(const std::vector<Reduction>& reductions) {
  std::vector<Reduction> out;
  bool is_field = false;  // the last of `out`
  for (const Reduction& r : reductions) {
    if (!is_field || !continues(out.back(), out.back().value_type.size_bytes, r)) {
      out.push_back(r);
      is_field = moves_field(r);
      continue;
    }
    ElementType& type = out.back().value_type;
    if (!type.is_record()) type.fields = {{out.back().value->field_name, type.scalar, 0}};
    type.fields.push_back({r.value->field_name, r.value_type.scalar, type.size_bytes});
    type.size_bytes += r.value_type.size_bytes;
    out.back().place_type = type;
  }
  std::vector<int> places;
  for (const Reduction& r : out) places.push_back(r.place->id);
  std::ranges::sort(places);
  return std::ranges::adjacent_find(places) == places.end() ? out : reductions;
}

}  // namespace

std::shared_ptr<const PlanModel> with_joined_fields(std::shared_ptr<const PlanModel> plan) {
  std::shared_ptr<PlanModel> out;
  for (std::size_t k = 0; k < plan->statements.size(); ++k) {
    const std::vector<Reduction>& reductions = plan->statements[k].reductions;
    if (reductions.size() < 2) continue;
    std::vector<Reduction> fewer = joined(reductions);
    if (fewer.size() == reductions.size()) continue;
    if (!out) out = changeable_copy(plan);
    out->statements[k].reductions = std::move(fewer);
  }
  return out ? out : plan;
}

}  // namespace kplan
