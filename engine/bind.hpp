#pragma once
// From a plan and the values a program gives to what analysis starts from.

#include <span>

#include "engine/analysis/pattern.hpp"
#include "kplan/engine.hpp"

namespace kplan {

/// The plan with this rank's values. `contents` keeps the fixed buffers' memory alive. Throws PlanError KP-B0xx.
struct BoundValues {
  BoundPlan bound;
  std::vector<std::vector<std::byte>> contents;  ///< by buffer; empty where none is known
};
BoundValues bind_values(std::shared_ptr<const PlanModel> model, const Values& values, std::int64_t rank,
                        std::int64_t size);

/// A program's value as a scalar of the type, as section 4's conversions allow. Throws PlanError KP-B013.
ScalarValue scalar_value(const Value& value, Scalar type, const std::string& plan, const std::string& name);

}  // namespace kplan
