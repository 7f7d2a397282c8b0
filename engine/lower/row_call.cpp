// How it works: clause by clause, the steps of a ColumnProgram become steps of rows, its slots values. Strides are
// given at run time but for those of last dimensions, which are 1 in every buffer without strides of its own: so ranks
// and sizes share code, unless the elements of several reductions lie alike on some of them only.
#include "engine/lower/row_call.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/analysis/columns.hpp"

namespace kplan {
namespace {

using jit::RowOpcode;
using jit::RowOperand;
using jit::RowPart;
using jit::RowStep;
using Form = ColumnProgram::Form;

class RowLowering {
 public:
  RowLowering(const BoundPlan& bound, const Statement& s, const char* what)
      : bound_(bound), s_(s), variables_(s.variables.size()) {
    call_.spec.name = fmt::format("{}_{}_{}", bound.model->name, s.name, what);
    call_.most_turns = largest_step_count / (std::ssize(s.clauses) + 1);
  }

  bool add_clauses(const std::optional<RowLoop>& loop) {
    loop_ = loop;
    return std::ranges::all_of(s_.clauses, [&](const Clause& c) {
      if (c.kind == ClauseKind::generator) return add_generator(c);
      const auto value = add(*c.expression, Form::integers);
      if (!value) return false;
      if (c.kind == ClauseKind::filter) add(RowStep{.opcode = RowOpcode::filter, .a = value->first});
      else variables_[static_cast<std::size_t>(c.variable)] = value->first;
      return true;
    });
  }

  /// The rest of a decided row.
  bool add_part(const Reduction& r, const RowWish& wish) {
    steps_ = &call_.spec.parts.emplace_back().steps;
    const Expr &decider = s_.is_pull ? *r.receiver : *r.sender, &other = s_.is_pull ? *r.sender : *r.receiver;
    if (!add_decider(decider)) return false;
    const auto peer = add(other, Form::integers);
    if (!peer) return false;
    require_inside(peer->first, scalar({RowScalar::Kind::size}));
    const bool is_listed = loop_ && loop_->is_listed;
    std::vector<RowOperand> columns{peer->first};
    RowOperand count = loop_ ? applied(Operation::sub, loop_end_, loop_first_) : RowOperand::literal(1);
    for (const RowEnd& wanted : wish.ends) {
      if (is_listed) break;
      const auto end = loop_ ? add_end_of_loop(wanted, loop_first_, count) : add_end(wanted);
      if (!end) return false;
      columns.push_back(end->first);
      if (!loop_) count = end->second;
    }
    for (const int v : wish.told)
      columns.push_back(loop_ && v == loop_->variable ? loop_first_ : variables_[static_cast<std::size_t>(v)]);
    if (wish.has_counts) columns.push_back(count);
    call_.spec.parts.back().columns = std::move(columns);
    call_.spec.parts.back().is_outside = is_listed;
    return !is_listed || add_turns(decider, wish);
  }

  bool add_told(const RowWish& wish) {
    const RowOperand row = add(RowStep{.opcode = RowOpcode::range,
                                       .a = RowOperand::literal(0),
                                       .b = scalar({RowScalar::Kind::given}),
                                       .c = RowOperand::literal(1)});
    const RowOperand at = offset(RowOperand::literal(0), row, RowOperand::literal(4));
    const auto word = [&](std::size_t column) {
      return add(
          RowStep{.opcode = RowOpcode::load, .type = Scalar::i32, .a = at, .array = static_cast<std::int32_t>(column)});
    };
    // Tables come first; the end may read buffers too.
    call_.buffers.assign(wish.told.size() + (wish.has_counts ? 1 : 0), -1);
    for (std::size_t w = 0; w < wish.told.size(); ++w) variables_[static_cast<std::size_t>(wish.told[w])] = word(w);
    const RowOperand count = wish.has_counts ? word(wish.told.size()) : RowOperand::literal(1);
    steps_ = &call_.spec.parts.emplace_back().steps;
    loop_ = wish.loop;
    const RowEnd& wanted = wish.ends.front();
    const auto end =
        loop_ ? add_end_of_loop(wanted, variables_[static_cast<std::size_t>(loop_->variable)], count) : add_end(wanted);
    if (!end) return false;
    if (end->second != count) require_inside(RowOperand::literal(0), applied(Operation::eq, end->second, count));
    call_.spec.parts.back().columns = {end->first};
    if (wish.has_counts || wanted.program->form() == Form::runs) call_.spec.parts.back().columns.push_back(count);
    return true;
  }

  RowCall take() { return std::move(call_); }

 private:
  struct Values {
    RowOperand first, second;
  };

  RowOperand add(const RowStep& step) {
    steps_->push_back(step);
    return {RowOperand::Kind::value, values_++};
  }
  RowOperand applied(Operation operation, RowOperand a, RowOperand b) {
    return add(RowStep{.opcode = RowOpcode::apply, .operation = operation, .a = a, .b = b});
  }
  RowOperand offset(RowOperand from, RowOperand index, RowOperand by) {
    const bool is_index = from == RowOperand::literal(0) && by == RowOperand::literal(1);
    return is_index ? index : add(RowStep{.opcode = RowOpcode::offset, .a = from, .b = index, .c = by});
  }
  void require_inside(RowOperand value, RowOperand end) {
    add(RowStep{.opcode = RowOpcode::inside, .a = value, .b = end});
  }
  RowOperand scalar(const RowScalar& wanted) {
    const auto at = std::ranges::find(call_.scalars, wanted) - call_.scalars.begin();
    if (at == std::ssize(call_.scalars)) call_.scalars.push_back(wanted);
    return RowOperand::scalar(static_cast<std::size_t>(at));
  }
  std::int32_t array(int buffer) {
    const auto at = std::ranges::find(call_.buffers, buffer) - call_.buffers.begin();
    if (at == std::ssize(call_.buffers)) call_.buffers.push_back(buffer);
    return static_cast<std::int32_t>(at);
  }
  RowOperand stride(int buffer, int dimension) {
    const Buffer& b = bound_.model->buffers[static_cast<std::size_t>(buffer)];
    const bool is_one = b.strides.empty() && static_cast<std::size_t>(dimension) + 1 == b.shape.size();
    return is_one ? RowOperand::literal(1) : scalar({RowScalar::Kind::stride, buffer, dimension});
  }

  bool add_generator(const Clause& c) {
    RowOperand& variable = variables_[static_cast<std::size_t>(c.variable)];
    const auto loop = [&](RowOperand first, RowOperand end, RowOperand by) {
      return add(RowStep{.opcode = RowOpcode::range, .a = first, .b = end, .c = by});
    };
    const RowOperand zero = RowOperand::literal(0), one = RowOperand::literal(1);
    switch (c.set.kind) {
      case Set::Kind::ranks: variable = loop(zero, scalar({RowScalar::Kind::size}), one); return true;
      case Set::Kind::range: {
        const auto first = add(*c.set.first, Form::integers), last = add(*c.set.last, Form::integers);
        const auto by = c.set.step ? add(*c.set.step, Form::integers) : Values{one, one};
        if (!first || !last || !by) return false;
        const RowOperand end = c.set.is_half_open ? last->first : applied(Operation::add, last->first, one);
        if (loop_ && loop_->variable == c.variable) {
          loop_first_ = first->first, loop_end_ = end;
          if (!loop_->is_listed) {
            add(RowStep{.opcode = RowOpcode::filter, .a = applied(Operation::lt, loop_first_, loop_end_)});
            return true;
          }
        }
        variable = loop(first->first, end, by->first);
        return true;
      }
      case Set::Kind::buffer: {
        const Expr& e = *c.set.buffer;
        if (!names_runs(*bound_.model, e)) return false;
        const auto run = add(e, Form::runs);
        if (!run) return false;
        const RowOperand at = loop(run->first, applied(Operation::add, run->first, run->second), one);
        variable = loaded(e.id, e.type, e.field_offset_bytes, at, e.element_bytes);
        return true;
      }
      case Set::Kind::listed: break;
    }
    return false;
  }

  RowOperand loaded(int buffer, Scalar type, std::size_t offset_bytes, RowOperand element, std::size_t element_bytes) {
    const RowOperand at = offset(RowOperand::literal(static_cast<std::int64_t>(offset_bytes)), element,
                                 RowOperand::literal(static_cast<std::int64_t>(element_bytes)));
    return add(RowStep{.opcode = RowOpcode::load, .type = type, .a = at, .array = array(buffer)});
  }

  /// Where it begins, and how many elements follow each other there; or the integer, and 1.
  std::optional<Values> add_end(const RowEnd& end) {
    auto out = add(*end.program);
    if (!out) return out;
    if (end.program->form() != Form::runs) out->second = RowOperand::literal(1);
    out->first = offset(RowOperand::literal(end.offset), out->first, RowOperand::literal(end.unit));
    return out;
  }

  /// What leaves out all but those in which this rank decides.
  bool add_decider(const Expr& decider) {
    if (decider.kind == ExprKind::rank) return true;
    const auto who = add(decider, Form::integers);
    if (!who) return false;
    require_inside(who->first, scalar({RowScalar::Kind::size}));
    add(RowStep{.opcode = RowOpcode::filter, .a = applied(Operation::eq, who->first, scalar({RowScalar::Kind::rank}))});
    return true;
  }

  /// The same in the loop's first turn of `count`, which is more than 0; checked in the last one, too.
  std::optional<Values> add_end_of_loop(const RowEnd& end, RowOperand first, RowOperand count) {
    RowOperand& turn = variables_[static_cast<std::size_t>(loop_->variable)];
    require_inside(RowOperand::literal(0), count);
    turn = applied(Operation::add, first, applied(Operation::sub, count, RowOperand::literal(1)));
    if (!add(*end.program)) return std::nullopt;
    turn = first;
    auto out = add_end(end);
    if (out) out->second = count;
    return out;
  }
  /// A part with the ends in each turn.
  bool add_turns(const Expr& decider, const RowWish& wish) {
    RowPart& part = call_.spec.parts.emplace_back();
    steps_ = &part.steps;
    if (!add_decider(decider)) return false;
    for (const RowEnd& wanted : wish.ends) {
      const auto end = add_end(wanted);
      if (!end) return false;
      part.columns.push_back(end->first);
    }
    return true;
  }

  std::optional<Values> add(const Expr& e, Form form) { return add(ColumnProgram(e, form, bound_.state)); }
  std::optional<Values> add(const ColumnProgram& program) {
    if (!program.is_complete()) return std::nullopt;
    slots_.assign(2, RowOperand::literal(0));
    for (const ColumnProgram::Step& step : program.steps()) add_step(step);
    return Values{slots_[0], slots_[1]};
  }

  RowOperand& slot(std::int32_t n) {
    if (slots_.size() <= static_cast<std::size_t>(n)) slots_.resize(static_cast<std::size_t>(n) + 1);
    return slots_[static_cast<std::size_t>(n)];
  }

  RowOperand operand(const ColumnProgram::Source& source) {
    using Kind = ColumnProgram::Source::Kind;
    switch (source.kind) {
      case Kind::value: return RowOperand::literal(source.value);
      case Kind::rank: return scalar({RowScalar::Kind::rank});
      case Kind::size: return scalar({RowScalar::Kind::size});
      case Kind::parameter: return scalar({RowScalar::Kind::parameter, source.number});
      case Kind::variable: return variables_[static_cast<std::size_t>(source.number)];
      case Kind::slot: return slot(source.number);
      case Kind::extent: return scalar({RowScalar::Kind::extent, source.number, static_cast<int>(source.value)});
      case Kind::element_count: break;
    }
    return scalar({RowScalar::Kind::element_count, source.number});
  }

  void add_step(const ColumnProgram::Step& step) {
    using Kind = ColumnProgram::Step::Kind;
    const RowOperand a = operand(step.a), zero = RowOperand::literal(0), one = RowOperand::literal(1);
    const auto extent = [&] { return scalar({RowScalar::Kind::extent, step.buffer, step.dimension}); };
    switch (step.kind) {
      case Kind::copy: slot(step.to) = a; return;
      case Kind::combine: slot(step.to) = applied(step.operation, a, operand(step.b)); return;
      case Kind::choose: {
        const RowOperand b = operand(step.b), c = operand(step.c);
        slot(step.to) = add(RowStep{.opcode = RowOpcode::choose, .a = a, .b = b, .c = c});
        return;
      }
      case Kind::negate: slot(step.to) = applied(Operation::eq, a, zero); return;
      case Kind::wrap:
        slot(step.to) =
            size_of(step.type) == 8 ? a : add(RowStep{.opcode = RowOpcode::wrap, .type = step.type, .a = a});
        return;
      case Kind::add_index: {
        require_inside(a, extent());
        const bool is_first = step.b.kind != ColumnProgram::Source::Kind::slot;
        slot(step.to) = offset(is_first ? zero : slot(step.to), a, stride(step.buffer, step.dimension));
        return;
      }
      case Kind::load:
        slot(step.to) = loaded(step.buffer, step.type, step.offset_bytes, slot(step.to), step.element_bytes);
        return;
      case Kind::lengths: break;
    }
    // 0 <= lo <= hi <= extent
    const RowOperand hi = operand(step.b);
    require_inside(hi, applied(Operation::add, extent(), one));
    require_inside(a, applied(Operation::add, hi, one));
    slot(step.to) = offset(zero, a, stride(step.buffer, step.dimension));
    slot(step.to + 1) = applied(Operation::sub, hi, a);
  }

  const BoundPlan& bound_;
  const Statement& s_;
  RowCall call_;
  std::vector<RowStep>* steps_ = &call_.spec.steps;
  std::int64_t values_ = 0;
  std::vector<RowOperand> variables_, slots_;
  std::optional<RowLoop> loop_;
  RowOperand loop_first_, loop_end_;
};

}  // namespace

std::string RowCall::arguments_text(const PlanModel& plan) const {
  const auto text_of = [&](const RowScalar& s) -> std::string {
    const auto buffer = [&] { return plan.buffers[static_cast<std::size_t>(s.number)].name; };
    switch (s.kind) {
      case RowScalar::Kind::rank: return "rank";
      case RowScalar::Kind::size: return "size";
      case RowScalar::Kind::parameter: return plan.parameters[static_cast<std::size_t>(s.number)].name;
      case RowScalar::Kind::extent: return fmt::format("extent {} of {}", s.dimension, buffer());
      case RowScalar::Kind::stride: return fmt::format("stride {} of {}", s.dimension, buffer());
      case RowScalar::Kind::element_count: return fmt::format("elements of {}", buffer());
      case RowScalar::Kind::given: break;
    }
    return "rows";
  };
  std::string out;
  for (std::size_t k = 0; k < scalars.size(); ++k)
    out += fmt::format("{}s{}: {}", k == 0 ? "" : ", ", k, text_of(scalars[k]));
  for (std::size_t k = 0; k < buffers.size(); ++k)
    out += fmt::format("{}array{}: {}",
                       k > 0         ? ", "
                       : out.empty() ? ""
                                     : "; ",
                       k,
                       buffers[k] < 0 ? fmt::format("word {} of the rows", k)
                                      : plan.buffers[static_cast<std::size_t>(buffers[k])].name);
  return out;
}

std::optional<RowCall> lower_decided_rows(const BoundPlan& bound, const Statement& s, std::span<const RowWish> wishes) {
  RowLowering lowering(bound, s, "rows");
  if (!lowering.add_clauses(wishes.front().loop)) return std::nullopt;
  for (const RowWish& wish : wishes)
    if (!lowering.add_part(s.reductions[wish.reduction], wish)) return std::nullopt;
  return lowering.take();
}

std::optional<RowCall> lower_told_rows(const BoundPlan& bound, const Statement& s, const RowWish& wish) {
  RowLowering lowering(bound, s, "told");
  if (!lowering.add_told(wish)) return std::nullopt;
  return lowering.take();
}

}  // namespace kplan
