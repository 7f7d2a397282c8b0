#include "plans/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kplan {
namespace {

[[noreturn]] void fault(const char* code, std::string message, Span span) {
  throw EvaluationFault{code, std::move(message), span};
}

const std::byte* known_contents(const Expr& element, const EvaluationContext& context) {
  const std::byte* contents = context.state->contents[static_cast<std::size_t>(element.id)];
  if (contents) return contents;
  throw EvaluationFault{"KP-B010",
                        fmt::format("the contents of buffer `{}` are needed here and were not given", element.name),
                        element.span, "give them with the values of the plan, or by --data"};
}

ScalarValue evaluate_operation(const Expr& e, const EvaluationContext& context) {
  const ScalarValue a = evaluate(*e.operands[0], context);
  const ScalarValue b = e.operands.size() > 1 ? evaluate(*e.operands[1], context) : a;
  const ScalarValue c = e.operands.size() > 2 ? evaluate(*e.operands[2], context) : b;
  if (e.is_index && e.operation != Operation::convert && e.operation != Operation::select && a.type == Scalar::i64 &&
      !is_comparison(e.operation))
    return ScalarValue::integer(apply_index(e.operation, a.as_integer(), b.as_integer(), e.span));
  ScalarValue out;
  if (!apply(e.operation, e.type, a, b, c, out)) fault("KP-R001", "the divisor is zero", e.span);
  return out;
}

ScalarValue evaluate_element(const Expr& e, const EvaluationContext& context) {
  std::int64_t offset = 0;
  if (context.selections && context.selections->contains(&e)) {
    const auto& offsets = context.selections->at(&e);
    offset = offsets[offsets.size() == 1 ? 0 : context.position];
  } else {
    offset = select(e, context)[0];
  }
  return ScalarValue::load(
      e.type, known_contents(e, context) + static_cast<std::size_t>(offset) * e.element_bytes + e.field_offset_bytes);
}

ScalarValue evaluate_operand(const Expr& e, const std::byte* bytes, const EvaluationContext& context) {
  const std::size_t offset =
      e.field < 0 ? 0 : context.operand_type->fields[static_cast<std::size_t>(e.field)].offset_bytes;
  return ScalarValue::load(e.type, bytes + offset);
}

}  // namespace

std::int64_t apply_index(Operation op, std::int64_t a, std::int64_t b, Span span) {
  std::int64_t r = 0;
  bool overflow = false;
  switch (op) {
    case Operation::add: overflow = __builtin_add_overflow(a, b, &r); break;
    case Operation::sub: overflow = __builtin_sub_overflow(a, b, &r); break;
    case Operation::mul: overflow = __builtin_mul_overflow(a, b, &r); break;
    case Operation::neg: overflow = __builtin_sub_overflow(std::int64_t{0}, a, &r); break;
    case Operation::abs:
      overflow = a == INT64_MIN;
      r = overflow ? 0 : std::abs(a);
      break;
    case Operation::shl:
      overflow = b < 0 || b > 63 || a > (INT64_MAX >> std::clamp<std::int64_t>(b, 0, 63)) ||
                 a < (INT64_MIN >> std::clamp<std::int64_t>(b, 0, 63));
      if (!overflow) r = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << b);
      break;
    case Operation::shr:
      if (b < 0)
        throw EvaluationFault{"KP-R002", fmt::format("a value is shifted by {} bits", b), span,
                              "a negative count has no meaning"};
      r = a >> std::min<std::int64_t>(b, 63);
      break;
    case Operation::pow2:
      overflow = a < 0 || a > 62;
      r = overflow ? 0 : std::int64_t{1} << a;
      break;
    case Operation::log2:
      if (a < 1)
        throw EvaluationFault{"KP-R002", fmt::format("the logarithm of {} is asked for", a), span,
                              "log2 takes positive integers"};
      [[fallthrough]];
    default: {
      if (divides(op) && b == -1 && a == INT64_MIN) {
        overflow = true;
        break;
      }
      ScalarValue out;
      if (!apply(op, Scalar::i64, ScalarValue::integer(a), ScalarValue::integer(b), out))
        fault("KP-R001", "the divisor is zero", span);
      return out.as_integer();
    }
  }
  if (overflow)
    fault("KP-R003",
          operand_count(op) == 1 ? fmt::format("index arithmetic overflows 64 bits in {}({})", name_of(op), a)
                                 : fmt::format("index arithmetic overflows 64 bits in {}({}, {})", name_of(op), a, b),
          span);
  return r;
}

ScalarValue evaluate(const Expr& e, const EvaluationContext& context) {
  switch (e.kind) {
    case ExprKind::constant: return e.value;
    case ExprKind::operation: return evaluate_operation(e, context);
    case ExprKind::logical_and:
      return ScalarValue::boolean(evaluate(*e.operands[0], context).as_boolean() &&
                                  evaluate(*e.operands[1], context).as_boolean());
    case ExprKind::logical_or:
      return ScalarValue::boolean(evaluate(*e.operands[0], context).as_boolean() ||
                                  evaluate(*e.operands[1], context).as_boolean());
    case ExprKind::conditional:
      return evaluate(*e.operands[evaluate(*e.operands[0], context).as_boolean() ? 1 : 2], context);
    case ExprKind::parameter: return context.state->parameters[static_cast<std::size_t>(e.id)];
    case ExprKind::variable: return context.variables[e.id];
    case ExprKind::rank: return ScalarValue::integer(context.state->rank);
    case ExprKind::size: return ScalarValue::integer(context.state->size);
    case ExprKind::element: return evaluate_element(e, context);
    case ExprKind::left: return evaluate_operand(e, context.left, context);
    case ExprKind::right: return evaluate_operand(e, context.right, context);
    default: fault("KP-I001", "an expression was not checked", e.span);
  }
}

EvaluationFault rank_outside_group(const char* what, std::int64_t rank, std::int64_t size, Span span) {
  return {"KP-P057", fmt::format("the {} {} is not among the group's ranks 0 to {}", what, rank, size - 1), span,
          "a filter in the where-list can leave it out"};
}

std::int64_t evaluate_index(const Expr& e, const EvaluationContext& context) {
  return evaluate(e, context).as_integer();
}

SubscriptRange slice_range(std::int64_t lo, std::int64_t hi, std::int64_t step) {
  // In 128 bits: the ends may be any integers.
  const Wide distance = step > 0 ? static_cast<Wide>(hi) - lo : static_cast<Wide>(lo) - hi;
  const Wide stride = step > 0 ? static_cast<Wide>(step) : -static_cast<Wide>(step);
  const Wide count = distance <= 0 ? 0 : (distance + stride - 1) / stride;
  return {lo, static_cast<std::int64_t>(std::min<Wide>(count, INT64_MAX)), step};
}

void check_bounds(const Expr& element, std::size_t dimension, const SubscriptRange& range, std::int64_t extent) {
  if (range.count == 0) return;
  const Wide last = static_cast<Wide>(range.first) + static_cast<Wide>(range.count - 1) * range.step;
  const Wide lowest = range.step > 0 ? static_cast<Wide>(range.first) : last,
             highest = range.step > 0 ? last : static_cast<Wide>(range.first);
  if (lowest >= 0 && highest < extent) return;
  const auto wrong = static_cast<std::int64_t>(std::clamp<Wide>(lowest < 0 ? lowest : highest, INT64_MIN, INT64_MAX));
  const std::string where = element.subscripts.size() > 1 ? fmt::format("along dimension {} ", dimension) : "";
  fault("KP-P052",
        fmt::format("index {} is outside the {} element{} {}of `{}`", wrong, extent, extent == 1 ? "" : "s", where,
                    element.name),
        element.span);
}

std::vector<SubscriptRange> subscript_ranges(const Expr& e, const EvaluationContext& context) {
  const Layout& layout = context.state->layouts[static_cast<std::size_t>(e.id)];
  std::vector<SubscriptRange> out;
  if (e.subscripts.empty()) {
    for (const std::int64_t extent : layout.shape) out.push_back({0, extent, 1});
    return out;
  }
  for (std::size_t d = 0; d < e.subscripts.size(); ++d) {
    const Subscript& s = e.subscripts[d];
    SubscriptRange range;
    if (!s.is_slice) {
      range.first = evaluate_index(*s.lo, context);
    } else {
      const std::int64_t step = s.step ? evaluate_index(*s.step, context) : 1;
      if (step <= 0) fault("KP-P053", fmt::format("the step of a slice is positive, not {}", step), s.step->span);
      range = slice_range(s.lo ? evaluate_index(*s.lo, context) : 0,
                          s.hi ? evaluate_index(*s.hi, context) : layout.shape[d], step);
    }
    check_bounds(e, d, range, layout.shape[d]);
    out.push_back(range);
  }
  return out;
}

std::vector<std::int64_t> select(const Expr& e, const EvaluationContext& context) {
  const Layout& layout = context.state->layouts[static_cast<std::size_t>(e.id)];
  std::vector<std::int64_t> out{0};
  const auto ranges = subscript_ranges(e, context);
  Wide count = 1;
  for (const SubscriptRange& r : ranges) count *= r.count;
  if (count == 0) return {};  // before dimensions that are not empty are listed
  if (count > largest_selection)
    fault("KP-P055", "the slice has more than 2^30 elements, which cannot be listed one by one", e.span);
  for (std::size_t d = 0; d < ranges.size(); ++d) {
    std::vector<std::int64_t> next;
    next.reserve(out.size() * static_cast<std::size_t>(ranges[d].count));
    for (const std::int64_t base : out)
      for (std::int64_t k = 0; k < ranges[d].count; ++k)
        next.push_back(base + (ranges[d].first + k * ranges[d].step) * layout.strides[d]);
    out = std::move(next);
  }
  return out;
}

std::vector<const Expr*> elements_read(const Expr& value) {
  std::vector<const Expr*> out;
  if (value.kind == ExprKind::element) out.push_back(&value);
  else
    for (const auto& o : value.operands)
      for (const Expr* e : elements_read(*o)) out.push_back(e);
  return out;
}

SetValues::SetValues(const Set& range, std::int64_t first, std::int64_t last, std::int64_t step, Span span)
    : first_(first), step_(step) {
  if (step == 0) fault("KP-P024", "the step of a range cannot be zero", range.step->span);
  if (range.is_half_open) {
    count_ = slice_range(first, last, step).count;
  } else if (step > 0 ? first <= last : first >= last) {
    const Wide distance = step > 0 ? static_cast<Wide>(last) - first : static_cast<Wide>(first) - last;
    const Wide stride = step > 0 ? static_cast<Wide>(step) : -static_cast<Wide>(step);
    count_ = static_cast<std::int64_t>(std::min<Wide>(distance / stride + 1, INT64_MAX));
  }
  if (count_ > largest_set) {
    const bool is_counted = count_ < INT64_MAX;
    fault("KP-P054", "the range has more than 2^40 values" + (is_counted ? fmt::format(", {}", count_) : ""), span);
  }
  // What differences of its values are multiplied with stays within 64 bits then.
  if (const Wide reach = static_cast<Wide>(last) - first;
      count_ > 1 && (reach > largest_reach || reach < -largest_reach))
    fault("KP-P054", fmt::format("the range from {} to {} reaches further than 2^62", first, last), span);
}

SetValues::SetValues(const Set& set, const EvaluationContext& context, Span span) {
  switch (set.kind) {
    case Set::Kind::ranks: count_ = context.state->size; return;
    case Set::Kind::range: {
      const std::int64_t first = evaluate_index(*set.first, context), last = evaluate_index(*set.last, context);
      *this = SetValues(set, first, last, set.step ? evaluate_index(*set.step, context) : 1, span);
      return;
    }
    case Set::Kind::listed:
      for (const auto& e : set.elements) values_.push_back(evaluate_index(*e, context));
      break;
    case Set::Kind::buffer: {
      const Expr& e = *set.buffer;
      const std::byte* contents = known_contents(e, context);
      for (const std::int64_t offset : select(e, context))
        values_.push_back(ScalarValue::load(e.type, contents + static_cast<std::size_t>(offset) * e.element_bytes +
                                                        e.field_offset_bytes)
                              .as_integer());
      break;
    }
  }
  count_ = static_cast<std::int64_t>(values_.size());
}

std::int64_t SetValues::operator[](std::int64_t k) const {
  return values_.empty() ? first_ + k * step_ : values_[static_cast<std::size_t>(k)];
}

void SetValues::write(std::int64_t first, std::int64_t count, std::int64_t* to) const {
  if (!values_.empty()) std::copy_n(values_.begin() + first, count, to);
  else
    for (std::int64_t k = 0; k < count; ++k) to[k] = first_ + (first + k) * step_;
}

namespace {

/// Of a plane of a buffer with that layout. Throws PlanError where the plane is longer.
Layout plane_layout(const PlanModel& plan, const Buffer& b, const Layout& whole, const EvaluationContext& context) {
  Layout out = whole;
  out.element_count = 1;
  for (std::size_t d = 0; d < out.shape.size(); ++d) {
    if (const ExprPtr& length = b.plane->lengths[d]) {
      out.shape[d] = std::max<std::int64_t>(evaluate_index(*length, context), 0);
      if (out.shape[d] > whole.shape[d])
        throw PlanError("KP-P052",
                        fmt::format("plan {}: `{}` takes {} elements along dimension {} on rank {}, where "
                                    "there are {}",
                                    plan.name, b.name, out.shape[d], d, context.state->rank, whole.shape[d]));
    } else if (b.plane->firsts[d]) {
      out.shape[d] = 1;
    }
    // Of a buffer that is empty along other dimensions, any.
    if (__builtin_mul_overflow(out.element_count, out.shape[d], &out.element_count)) out.element_count = INT64_MAX;
  }
  out.extent = out.element_count == 0 ? 0 : 1;
  for (std::size_t d = 0; d < out.shape.size() && out.extent > 0; ++d)
    out.extent += (out.shape[d] - 1) * out.strides[d];
  return out;
}

}  // namespace

std::vector<Layout> layouts_of(const PlanModel& plan, std::int64_t rank, std::int64_t size,
                               const std::vector<ScalarValue>& parameters) {
  RankState state;
  state.rank = rank;
  state.size = size;
  state.parameters = parameters;
  const EvaluationContext context{.state = &state};
  std::vector<Layout> out;
  for (const Buffer& b : plan.buffers) {
    if (b.plane) {
      out.push_back(plane_layout(plan, b, out[static_cast<std::size_t>(b.plane->buffer)], context));
      continue;
    }
    Layout layout;
    const auto evaluate_at = [&](const ExprPtr& e, const SourceText& text) {
      try {
        return evaluate_index(*e, context);
      } catch (const EvaluationFault& f) {
        throw PlanError(f.code, fmt::format("plan {}, buffer `{}`, `{}` on rank {}: {}", plan.name, b.name, text.text,
                                            rank, f.message));
      }
    };
    for (std::size_t d = 0; d < b.shape.size(); ++d) {
      const std::int64_t extent = evaluate_at(b.shape[d], b.shape_texts[d]);
      if (extent < 0)
        throw PlanError("KP-B001",
                        fmt::format("plan {}: buffer `{}` has the extent {} = {} on rank {}; an extent is not negative",
                                    plan.name, b.name, b.shape_texts[d].text, extent, rank));
      layout.shape.push_back(extent);
    }
    layout.element_count = std::ranges::count(layout.shape, 0) > 0 ? 0 : 1;
    for (const std::int64_t extent : layout.shape)
      if (__builtin_mul_overflow(layout.element_count, extent, &layout.element_count) ||
          layout.element_count > largest_element_count)
        throw PlanError("KP-B002", fmt::format("plan {}: buffer `{}` would have more than 2^46 elements on rank {}",
                                               plan.name, b.name, rank));
    layout.strides.assign(b.shape.size(), 1);
    for (std::size_t d = b.shape.size(); d-- > 1;)
      layout.strides[d - 1] = layout.element_count == 0 ? 1 : layout.strides[d] * layout.shape[d];
    for (std::size_t d = 0; d < b.strides.size(); ++d) {
      layout.strides[d] = evaluate_at(b.strides[d], b.stride_texts[d]);
      if (layout.strides[d] < 1 || layout.strides[d] > largest_element_count)
        throw PlanError("KP-B003", fmt::format("plan {}: buffer `{}` has the stride {} = {} on rank {}; strides are {}",
                                               plan.name, b.name, b.stride_texts[d].text, layout.strides[d], rank,
                                               layout.strides[d] < 1 ? "positive" : "at most 2^46"));
    }
    Wide extent = layout.element_count == 0 ? 0 : 1;
    for (std::size_t d = 0; d < layout.shape.size() && extent > 0; ++d)
      extent += static_cast<Wide>(layout.shape[d] - 1) * layout.strides[d];
    if (extent > largest_element_count)
      throw PlanError("KP-B002", fmt::format("plan {}: buffer `{}` would reach over more than 2^46 elements on rank {}",
                                             plan.name, b.name, rank));
    layout.extent = static_cast<std::int64_t>(extent);
    out.push_back(std::move(layout));
  }
  return out;
}

namespace {

struct Enumeration {
  const Statement& s;
  const std::function<bool(const std::vector<ScalarValue>&)>& f;
  EvaluationContext context;
  std::vector<ScalarValue> variables;
  std::int64_t most_steps = largest_step_count;
  std::int64_t steps = 0;
  int bound = 0;

  bool from(std::size_t c) {
    if (++steps > most_steps)
      fault(
          "KP-P051",
          fmt::format("the where-list takes more than {} steps; narrow its sets instead of filtering them", most_steps),
          s.clauses.empty() ? Span{} : s.clauses[std::min(c, s.clauses.size() - 1)].span);
    if (c == s.clauses.size()) return f(variables);
    const Clause& clause = s.clauses[c];
    switch (clause.kind) {
      case ClauseKind::filter: return !evaluate(*clause.expression, context).as_boolean() || from(c + 1);
      case ClauseKind::binding: {
        variables[static_cast<std::size_t>(clause.variable)] = evaluate(*clause.expression, context);
        ++bound;
        const bool go_on = from(c + 1);
        --bound;
        return go_on;
      }
      case ClauseKind::generator: break;
    }
    const SetValues set(clause.set, context, clause.span);
    ++bound;
    for (std::int64_t k = 0; k < set.count(); ++k) {
      variables[static_cast<std::size_t>(clause.variable)] = ScalarValue::integer(set[k]);
      if (!from(c + 1)) return false;
    }
    --bound;
    return true;
  }
};

}  // namespace

void for_each_environment(const Statement& s, const RankState& state,
                          const std::function<bool(const std::vector<ScalarValue>&)>& f,
                          std::vector<ScalarValue>* faulty, int* bound_count, std::int64_t most_steps) {
  Enumeration e{s, f, {}, {}, most_steps};
  e.variables.resize(s.variables.size());
  e.context.state = &state;
  e.context.variables = e.variables.data();
  try {
    e.from(0);
  } catch (const EvaluationFault&) {
    if (faulty) *faulty = e.variables;
    if (bound_count) *bound_count = e.bound;
    throw;
  }
}

std::string environment_text(const Statement& s, const std::vector<ScalarValue>& variables, int bound_count) {
  std::string out;
  for (int k = 0; k < bound_count && k < static_cast<int>(variables.size()); ++k) {
    const auto v = static_cast<std::size_t>(k);
    out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", s.variables[v].name, to_text(variables[v]));
  }
  return out;
}

}  // namespace kplan
