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

/// The varying parameters and buffers that decide which elements move.
struct VaryingNames {
  std::set<int> parameters, buffers;
};
VaryingNames varying_names(const PlanModel& plan, const Statement& s);

/// The varying parameters that all ranks must set alike.
std::vector<int> uniform_varying_parameters(const PlanModel& plan);

}  // namespace kplan
