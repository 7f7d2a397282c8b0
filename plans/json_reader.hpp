#pragma once
// JSON plans (language.md section 7) to and from PlanSource.

#include <string>

#include "plans/plan_source.hpp"

namespace kplan {

/// Reads a document; `name` stands in messages. Checks the form of the document and the syntax of its texts, not
/// what they mean. Throws PlanError.
PlanSource read_plan(const std::string& name, std::string json);

/// Whether a JSON string can hold the text: it is UTF-8.
bool is_json_text(const std::string& text);

/// The document that reads back to the same plan, two spaces an indent, keys in a fixed order, defaults left out.
std::string write_plan(const PlanSource& plan);

}  // namespace kplan
