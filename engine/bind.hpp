#pragma once
// From a plan and the values a program gives to what analysis starts from.

#include <span>

#include "engine/analysis/pattern.hpp"
#include "kplan/engine.hpp"

namespace kplan {

/// The plan with this rank's values. Throws PlanError KP-B0xx.
struct BoundValues {
  BoundPlan bound;
  std::vector<bool> is_given;  ///< by buffer: contents, of a fixed one
  /// Keeps what `bound` knows of fixed buffers alive, shared with the values given.
  std::vector<std::shared_ptr<const std::vector<std::byte>>> contents;
};
BoundValues bind_values(const std::shared_ptr<const PlanModel>& model, const Values& values, std::int64_t rank,
                        std::int64_t size);

/// A program's value as a scalar of the type, as section 4's conversions allow. Throws PlanError KP-B013.
ScalarValue scalar_value(const Value& value, Scalar type, const std::string& plan, const std::string& name);

}  // namespace kplan
