#pragma once
// Who can work out a statement's pattern (language.md section 6; Kanor section 3), inferred from which names are
// uniform, private, fixed and varying. Needs no values and is the same on every rank.

#include <set>
#include <string>
#include <vector>

#include "plans/model.hpp"

namespace kplan {

struct Knowledge {
  KnowledgeClass knowledge = KnowledgeClass::global;
  std::string reason;       ///< one sentence for people
  bool is_varying = false;  ///< the pattern is to be found anew at every run
  std::string varying_reason;
};

/// Throws PlanError KP-A020 when the plan claims another class than that which is inferred, unless it claims
/// corresponding knowledge, which cannot be.
Knowledge infer_knowledge(const PlanModel& plan, const Statement& s);
/// The same of all statements, by number.
std::vector<Knowledge> infer_knowledge(const PlanModel& plan);

/// Whether the ranks that evaluate the where-list must tell the others.
bool is_told(const Knowledge& knowledge);

/// The varying parameters and buffers that decide which elements move.
struct VaryingNames {
  std::set<int> parameters, buffers;
};
VaryingNames varying_names(const PlanModel& plan, const Statement& s);

/// Whether both ends work the pattern out, from parameters and from nothing else that varies.
bool hangs_on_parameters(const PlanModel& plan, const Statement& s);
/// Whether every rank finds the same value for an expression of the statement, from uniform parameters, and perhaps the
/// number of ranks in the world.
bool is_of_uniform_parameters(const PlanModel& plan, const Statement& s, const Expr& e);

/// What of such a pattern varies: an expression is_of_uniform_parameters() or a private parameter, or its remainder.
struct VaryingExpression {
  const Expr* value = nullptr;
  const Expr* modulus = nullptr;  ///< of fixed uniform parameters; null: the whole value matters
};
/// The largest ones, each once. Where all of them are as in another run, so is all that decides which elements move.
std::vector<VaryingExpression> varying_expressions(const PlanModel& plan, const Statement& s);

/// The varying parameters that all ranks must set alike.
std::vector<int> uniform_varying_parameters(const PlanModel& plan);

}  // namespace kplan
