#include "engine/analysis/affine_reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace kplan {
namespace {

/// The one environment of the box where a form is smallest, or largest.
Box corner(const Box& box, const std::vector<std::int64_t>& coefficients, bool upper) {
  Box out = box;
  for (std::size_t n = 0; n < out.positions.size(); ++n) {
    const Progression p = out.positions[n];
    out.positions[n] = {coefficients[n] != 0 && (coefficients[n] > 0) == upper ? p.last() : p.first, 1, 1};
  }
  return out;
}

/// The bounds of a subscript over a whole box: at the two environments where it is smallest and largest.
void check_corners(const Expr& e, std::size_t d, SubscriptRange range, const Formula::Affine& form, std::int64_t extent,
                   const Box& box) {
  if (range.count == 0) return;
  for (const bool upper : {false, true}) {
    Wide at = form.constant;
    for (std::size_t n = 0; n < form.coefficients.size(); ++n)
      if ((form.coefficients[n] > 0) == upper)
        at += static_cast<Wide>(form.coefficients[n]) * (box.positions[n].count - 1);
    range.first = static_cast<std::int64_t>(std::clamp<Wide>(at, INT64_MIN, INT64_MAX));
    try {
      check_bounds(e, d, range, extent);
    } catch (const EvaluationFault& f) {
      throw SolverFault{f, corner(box, form.coefficients, upper)};
    }
  }
}

}  // namespace

std::optional<AffineReference> affine_number(int number, const Box& box) {
  const auto n = static_cast<std::size_t>(number);
  if (box.sets[n].list && box.positions[n].count > 1) return std::nullopt;
  AffineReference out;
  out.base = Formula::value_at(box, n, box.positions[n].first);
  out.strides.assign(box.positions.size(), 0);
  if (box.positions[n].count > 1) out.strides[n] = box.sets[n].step * box.positions[n].step;
  return out;
}

std::optional<AffineReference> affine_element(const Formula& formula, const Layout& layout, const Expr& e,
                                              const Box& box) {
  AffineReference out;
  out.base = static_cast<std::int64_t>(e.field_offset_bytes);
  out.strides.assign(box.positions.size(), 0);
  const auto bytes = static_cast<std::int64_t>(e.element_bytes);
  for (std::size_t d = 0; d < layout.shape.size(); ++d) {
    const Subscript whole{nullptr, nullptr, nullptr, true};
    const Subscript& sub = e.subscripts.empty() ? whole : e.subscripts[d];
    Formula::Affine first{0, std::vector<std::int64_t>(box.positions.size(), 0)};
    if (sub.lo) {
      const auto form = formula.affine(*sub.lo, box);
      if (!form) return std::nullopt;
      first = *form;
    }
    SubscriptRange range{first.constant, 1, 1};
    if (sub.is_slice) {
      std::int64_t end = layout.shape[d], step = 1;
      if (sub.hi) {
        const auto form = formula.affine(*sub.hi, box);
        if (!form || form->coefficients != first.coefficients) return std::nullopt;
        end = form->constant;
      } else if (std::ranges::any_of(first.coefficients, [](std::int64_t c) { return c != 0; })) {
        return std::nullopt;
      }
      if (sub.step) {
        const auto form = formula.affine(*sub.step, box);
        if (!form || std::ranges::any_of(form->coefficients, [](std::int64_t c) { return c != 0; }))
          return std::nullopt;
        step = form->constant;
        if (step <= 0)
          throw SolverFault{{"KP-P053", fmt::format("the step of a slice is positive, not {}", step), sub.step->span},
                            corner(box, first.coefficients, false)};
      }
      range = slice_range(first.constant, end, step);
      out.slices.push_back({range.count, range.step * layout.strides[d] * bytes});
    }
    check_corners(e, d, range, first, layout.shape[d], box);
    if (range.count == 0) {
      out.base = 0;
      continue;
    }
    out.base += first.constant * layout.strides[d] * bytes;
    for (std::size_t n = 0; n < first.coefficients.size(); ++n)
      if (box.positions[n].count > 1) out.strides[n] += first.coefficients[n] * layout.strides[d] * bytes;
  }
  return out;
}

std::optional<std::vector<std::int64_t>> refine_slices(std::vector<AffineReference>& references) {
  std::set<std::int64_t> cuts;
  std::int64_t total = 1;
  for (AffineReference& r : references) {
    std::int64_t product = 1;
    for (std::size_t d = r.slices.size(); d-- > 0;) {
      if (__builtin_mul_overflow(product, r.slices[d].count, &product)) return std::nullopt;
      cuts.insert(product);
    }
    if (product == 1) continue;
    if (total != 1 && product != total) return std::nullopt;  // of different length: found when they are listed
    total = product;
  }
  if (total == 0) cuts = {0};
  cuts.erase(1);
  std::vector<std::int64_t> counts;  // innermost first
  std::int64_t inner = 1;
  for (const std::int64_t cut : cuts) {
    if (cut == 0) return std::vector<std::int64_t>{0};
    if (cut % inner != 0) return std::nullopt;
    counts.push_back(cut / inner);
    inner = cut;
  }
  for (AffineReference& r : references) {
    std::vector<SliceDimension> out;
    std::size_t d = r.slices.size();
    std::int64_t left = 1, stride = 0;  // what is left of the dimension being cut
    for (const std::int64_t count : counts) {
      while (left == 1 && d > 0) {
        left = r.slices[--d].count;
        stride = r.slices[d].stride;
      }
      if (left == 1) {
        out.push_back({count, 0});
        continue;
      }
      if (left % count != 0) return std::nullopt;
      out.push_back({count, stride});
      left /= count;
      stride *= count;
    }
    std::ranges::reverse(out);
    r.slices = std::move(out);
  }
  std::ranges::reverse(counts);
  return counts;
}

std::optional<std::int64_t> element_count_of(const Formula& formula, const Layout& layout, const Expr& e,
                                             const Box& box) {
  if (e.subscripts.empty()) return layout.element_count;
  std::int64_t out = 1;
  for (std::size_t d = 0; d < e.subscripts.size(); ++d) {
    const Subscript& sub = e.subscripts[d];
    if (!sub.is_slice) continue;
    const auto lo =
        sub.lo ? formula.affine(*sub.lo, box) : Formula::Affine{0, std::vector<std::int64_t>(box.positions.size(), 0)};
    const auto hi = sub.hi ? formula.affine(*sub.hi, box)
                           : Formula::Affine{layout.shape[d], std::vector<std::int64_t>(box.positions.size(), 0)};
    const auto step = sub.step ? formula.affine(*sub.step, box)
                               : Formula::Affine{1, std::vector<std::int64_t>(box.positions.size(), 0)};
    if (!lo || !hi || !step || lo->coefficients != hi->coefficients || step->constant < 1) return std::nullopt;
    if (std::ranges::any_of(step->coefficients, [](std::int64_t c) { return c != 0; })) return std::nullopt;
    if (__builtin_mul_overflow(out, slice_range(lo->constant, hi->constant, step->constant).count, &out))
      return std::nullopt;
  }
  return out;
}

std::int64_t element_count_at(const Layout& layout, const Expr& e, const EvaluationContext& context) {
  if (e.subscripts.empty()) return layout.element_count;
  std::int64_t out = 1;
  for (std::size_t d = 0; d < e.subscripts.size(); ++d) {
    const Subscript& sub = e.subscripts[d];
    if (!sub.is_slice) continue;
    const std::int64_t step = sub.step ? evaluate_index(*sub.step, context) : 1;
    if (step < 1) return -1;  // an error where elements are selected
    const std::int64_t lo = sub.lo ? evaluate_index(*sub.lo, context) : 0;
    const std::int64_t hi = sub.hi ? evaluate_index(*sub.hi, context) : layout.shape[d];
    if (__builtin_mul_overflow(out, slice_range(lo, hi, step).count, &out)) return -1;
  }
  return out;
}

std::int64_t element_count_at(const std::vector<const Expr*>& references, const EvaluationContext& context) {
  std::int64_t out = 1;
  for (const Expr* e : references) {
    const std::int64_t count = element_count_at(context.state->layouts[static_cast<std::size_t>(e->id)], *e, context);
    if (count != 1) out = count;
  }
  return out;
}

std::vector<std::int64_t> select_bytes(const Expr& element, const EvaluationContext& context) {
  std::vector<std::int64_t> out = select(element, context);
  for (std::int64_t& at : out)
    at = at * static_cast<std::int64_t>(element.element_bytes) + static_cast<std::int64_t>(element.field_offset_bytes);
  return out;
}

}  // namespace kplan
