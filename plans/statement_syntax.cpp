#include "plans/statement_syntax.hpp"

namespace kplan {

std::size_t node_count(const StatementSyntax& s) {
  std::size_t out = 0;
  const auto add = [&](const ExprPtr& e) { out += e ? node_count(*e) : 0; };
  for (const ReductionSyntax& r : s.reductions)
    for (const auto* part : {&r.place, &r.receiver, &r.value, &r.sender}) add(*part);
  for (const ClauseSyntax& c : s.clauses) {
    for (const auto* part : {&c.expression, &c.set.first, &c.set.last, &c.set.step, &c.set.named}) add(*part);
    for (const ExprPtr& e : c.set.elements) add(e);
  }
  return out;
}

std::string to_text(const SetSyntax& s) {
  switch (s.kind) {
    case SetKind::named: return to_text(*s.named);
    case SetKind::listed: {
      std::string out = "{";
      for (std::size_t k = 0; k < s.elements.size(); ++k) out += (k ? ", " : "") + to_text(*s.elements[k]);
      return out + "}";
    }
    case SetKind::range: break;
  }
  if (s.is_half_open)
    return "range(" + to_text(*s.first) + ", " + to_text(*s.last) + (s.step ? ", " + to_text(*s.step) : "") + ")";
  return "{" + to_text(*s.first) + " ... " + to_text(*s.last) + (s.step ? " by " + to_text(*s.step) : "") + "}";
}

std::string to_text(const ClauseSyntax& c) {
  switch (c.kind) {
    case ClauseKind::binding: return c.names[0] + " = " + to_text(*c.expression);
    case ClauseKind::filter: {
      // A bare name would be read as the first of several names of a generator that follows.
      const std::string text = to_text(*c.expression);
      return c.expression->kind == ExprKind::name && c.expression->subscripts.empty() ? "(" + text + ")" : text;
    }
    case ClauseKind::generator: break;
  }
  std::string out;
  for (std::size_t k = 0; k < c.names.size(); ++k) out += (k ? ", " : "") + c.names[k];
  return out + " in " + to_text(c.set);
}

std::string to_text(const ReductionSyntax& r) {
  const std::string arrow = r.op == "assign" ? " <<= " : " << " + r.op + " << ";
  return to_text(*r.place) + "@" + to_text(*r.receiver) + arrow + to_text(*r.value) + "@" + to_text(*r.sender);
}

std::string to_text(const StatementSyntax& s) {
  std::string out;
  for (std::size_t k = 0; k < s.reductions.size(); ++k) out += (k ? ", " : "") + to_text(s.reductions[k]);
  for (std::size_t k = 0; k < s.clauses.size(); ++k) out += (k ? ", " : " where ") + to_text(s.clauses[k]);
  return out;
}

}  // namespace kplan
