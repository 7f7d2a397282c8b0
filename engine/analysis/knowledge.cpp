// How it works: the expressions that decide a pattern are visited with a word for each (the filter, the receiver, ...);
// the first private or varying name found in one gives the class and the reason.
#include "engine/analysis/knowledge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "engine/analysis/expressions.hpp"
#include "plans/diagnostic.hpp"

namespace kplan {
namespace {

/// The name found to be private (or varying), and where.
struct Finding {
  std::string where, name;
  std::string text() const { return fmt::format("{} depends on `{}`", where, name); }
};

class Inference {
 public:
  Inference(const PlanModel& plan, const Statement& s) : plan_(plan), s_(s) {}

  Finding find_private() const {
    Finding out;
    const auto is_private = [&](const Expr& e) {
      if (e.kind == ExprKind::parameter) return !plan_.parameters[index(e)].is_uniform;
      return e.kind == ExprKind::element && !plan_.buffers[index(e)].is_uniform;
    };
    each_deciding([&](const Expr& e, const auto& where) { note(e, where, is_private, out); });
    // How many elements travel is decided by the evaluator's side of each reduction.
    for (const Reduction& r : s_.reductions) {
      const Expr& counted = s_.is_pull ? *r.place : *r.value;
      visit(counted, [&](const Expr& e) {
        if (e.kind == ExprKind::element && (&e == &counted || !e.is_index)) note_count(e, is_private, out);
      });
    }
    return out;
  }

  Finding find_varying() const {
    Finding out;
    each_of_pattern([&](const Expr& e, const auto& where) {
      note(
          e, where, [&](const Expr& x) { return is_varying(x); }, out);
    });
    return out;
  }
  VaryingNames varying_names() const {
    VaryingNames out;
    each_of_pattern([&](const Expr& e, const auto&) {
      visit(e, [&](const Expr& x) {
        if (is_varying(x)) (x.kind == ExprKind::parameter ? out.parameters : out.buffers).insert(x.id);
      });
    });
    return out;
  }
  std::vector<VaryingExpression> varying_expressions() const {
    std::vector<VaryingExpression> out;
    each_of_pattern([&](const Expr& e, const auto&) { note_expressions(e, out); });
    return out;
  }

 private:
  bool has_varying(const Expr& e) const {
    return contains(e, [&](const Expr& x) { return is_varying(x); });
  }
  bool is_known_to_all(const Expr& e) const { return is_of_uniform_parameters(plan_, s_, e); }
  void note_expressions(const Expr& e, std::vector<VaryingExpression>& out) const {
    if (!has_varying(e)) return;
    if (is_known_to_all(e) || e.kind == ExprKind::parameter) return note({&e}, out);
    const bool is_remainder = e.kind == ExprKind::operation && e.operation == Operation::mod && e.is_index;
    if (is_remainder && is_known_to_all(*e.operands[1]) && !has_varying(*e.operands[1]))
      return note_summands(*e.operands[0], *e.operands[1], out);
    for (const ExprPtr& operand : e.operands) note_expressions(*operand, out);
    for (const Subscript& sub : e.subscripts)
      for (const auto* part : {&sub.lo, &sub.hi, &sub.step})
        if (*part) note_expressions(**part, out);
  }
  /// Of a sum, or one summand, of which the remainder is taken.
  void note_summands(const Expr& e, const Expr& modulus, std::vector<VaryingExpression>& out) const {
    if (is_known_to_all(e) && has_varying(e)) return note({&e, &modulus}, out);
    if (e.kind != ExprKind::operation || (e.operation != Operation::add && e.operation != Operation::sub))
      return note_expressions(e, out);
    for (const ExprPtr& operand : e.operands) note_summands(*operand, modulus, out);
  }
  static void note(const VaryingExpression& e, std::vector<VaryingExpression>& out) {
    const auto is_it = [&](const VaryingExpression& known) {
      return are_same(*known.value, *e.value) && !known.modulus == !e.modulus &&
             (!e.modulus || are_same(*known.modulus, *e.modulus));
    };
    if (std::ranges::none_of(out, is_it)) out.push_back(e);
  }

  static std::size_t index(const Expr& e) { return static_cast<std::size_t>(e.id); }
  bool is_varying(const Expr& e) const {
    if (e.kind == ExprKind::parameter) return plan_.parameters[index(e)].is_varying;
    return e.kind == ExprKind::element && plan_.buffers[index(e)].is_varying;
  }
  std::string name_of_node(const Expr& e) const {
    return e.kind == ExprKind::parameter ? plan_.parameters[index(e)].name : plan_.buffers[index(e)].name;
  }

  /// `where` gives the words for it.
  template <class Where, class Is>
  void note(const Expr& e, const Where& where, const Is& is, Finding& out) const {
    visit(e, [&](const Expr& x) {
      if (out.name.empty() && is(x)) out = {where(), name_of_node(x)};
    });
  }

  /// A slice's bounds, and for whole dimensions the buffer's shape.
  template <class Is>
  void note_count(const Expr& e, const Is& is, Finding& out) const {
    const auto where = [&] { return fmt::format("the number of elements of `{}`", e.name); };
    const Buffer& buffer = plan_.buffers[index(e)];
    for (std::size_t d = 0; d < buffer.shape.size(); ++d) {
      const Subscript* sub = e.subscripts.empty() ? nullptr : &e.subscripts[d];
      if (sub && !sub->is_slice) continue;
      if (!sub || !sub->hi) note(*buffer.shape[d], where, is, out);
      if (!sub) continue;
      for (const auto* part : {&sub->lo, &sub->hi, &sub->step})
        if (*part) note(**part, where, is, out);
    }
  }

  /// Calls f(expression, where) for the where-list and the ranks; where() gives the words for it.
  template <class F>
  void each_deciding(const F& f) const {
    const auto text = [&](Span span) { return s_.text.text.substr(span.begin, span.end - span.begin); };
    for (const Clause& c : s_.clauses) {
      const auto where = [&] {
        return fmt::format("the {} `{}`",
                           c.kind == ClauseKind::filter    ? "filter"
                           : c.kind == ClauseKind::binding ? "binding"
                                                           : "generator",
                           text(c.span));
      };
      for (const auto* e : {&c.expression, &c.set.first, &c.set.last, &c.set.step, &c.set.buffer})
        if (*e) f(**e, where);
      for (const auto& e : c.set.elements) f(*e, where);
    }
    for (const Reduction& r : s_.reductions) {
      f(*r.sender, [&] { return fmt::format("the sender `{}`", text(r.sender->span)); });
      f(*r.receiver, [&] { return fmt::format("the receiver `{}`", text(r.receiver->span)); });
    }
  }
  /// The same, and for subscripts: all that decides which elements move.
  template <class F>
  void each_of_pattern(const F& f) const {
    each_deciding(f);
    for (const Reduction& r : s_.reductions)
      for (const Expr* side : {r.place.get(), r.value.get()})
        visit(*side, [&](const Expr& e) {
          for (const Subscript& sub : e.subscripts)
            for (const auto* part : {&sub.lo, &sub.hi, &sub.step})
              if (*part) f(**part, [&] { return fmt::format("a subscript of `{}`", e.name); });
        });
  }

  const PlanModel& plan_;
  const Statement& s_;
};

/// Corresponding knowledge cannot be inferred; any other claim says what is.
void check_claim(const PlanModel& plan, const Statement& s, const Knowledge& inferred) {
  if (!s.claimed || s.claimed == KnowledgeClass::corresponding || s.claimed == inferred.knowledge) return;
  throw error_at(plan.source.document, s.claim_origin, "KP-A020",
                 fmt::format("{} knowledge is claimed, and statement {} has {} knowledge: {}; leave the claim out{}",
                             name_of(*s.claimed), s.name, name_of(inferred.knowledge), inferred.reason,
                             inferred.knowledge == KnowledgeClass::global
                                 ? ""
                                 : ", or claim corresponding if both ends of each message know it"));
}

}  // namespace

VaryingNames varying_names(const PlanModel& plan, const Statement& s) { return Inference(plan, s).varying_names(); }

bool is_told(const Knowledge& knowledge) {
  return knowledge.knowledge == KnowledgeClass::sender || knowledge.knowledge == KnowledgeClass::receiver;
}

bool hangs_on_parameters(const PlanModel& plan, const Statement& s) {
  return !is_told(infer_knowledge(plan, s)) && varying_names(plan, s).buffers.empty();
}

bool is_of_uniform_parameters(const PlanModel& plan, const Statement& s, const Expr& e) {
  switch (e.kind) {
    case ExprKind::constant: return true;
    case ExprKind::parameter: return plan.parameters[static_cast<std::size_t>(e.id)].is_uniform;
    case ExprKind::size: return s.group < 0;
    case ExprKind::operation:
    case ExprKind::logical_and:
    case ExprKind::logical_or:
    case ExprKind::conditional:
      return std::ranges::all_of(e.operands, [&](const ExprPtr& x) { return is_of_uniform_parameters(plan, s, *x); });
    default: return false;
  }
}

std::vector<VaryingExpression> varying_expressions(const PlanModel& plan, const Statement& s) {
  return Inference(plan, s).varying_expressions();
}

Knowledge infer_knowledge(const PlanModel& plan, const Statement& s) {
  const Inference inference(plan, s);
  Knowledge out;
  const Finding varying = inference.find_varying();
  if (!varying.name.empty()) {
    out.is_varying = true;
    out.varying_reason = varying.text() + ", which is varying";
  }
  const Finding finding = inference.find_private();
  if (finding.name.empty()) {
    out.knowledge = KnowledgeClass::global;
    out.reason = s.clauses.empty()
                     ? "the ranks depend on nothing private"
                     : "the where-list and the ranks depend on nothing private but `rank`, which every rank can replay";
    check_claim(plan, s, out);
    return out;
  }
  out.knowledge = s.is_pull ? KnowledgeClass::receiver : KnowledgeClass::sender;
  out.reason = fmt::format("{}, which is private", finding.text());
  check_claim(plan, s, out);
  if (s.claimed == KnowledgeClass::corresponding) {
    out.knowledge = KnowledgeClass::corresponding;
    out.reason += "; the plan claims that both ends of each message know it, which is checked when it is compiled";
  }
  return out;
}

std::vector<Knowledge> infer_knowledge(const PlanModel& plan) {
  std::vector<Knowledge> out;
  for (const Statement& s : plan.statements) out.push_back(infer_knowledge(plan, s));
  return out;
}

std::vector<int> uniform_varying_parameters(const PlanModel& plan) {
  std::vector<int> out;
  for (std::size_t p = 0; p < plan.parameters.size(); ++p)
    if (plan.parameters[p].is_uniform && plan.parameters[p].is_varying) out.push_back(static_cast<int>(p));
  return out;
}

}  // namespace kplan
