#pragma once
// What a plan's buffers and private parameters hold, as a JSON document says it:
//
//   {"A":      {"fill": "rank + 0.5 * i0"},            an expression over rank, size, parameters and the indices i0,
//   i1, ...
//    "P":      {"fill": {"mass": "i0", "id": "rank"}}, records: one for each field
//    "idx":    {"values": {"0": [3, 1], "1": [2, 2]}}, elements in row-major order, by rank; or one list for all ranks
//    "stride": {"value": "rank + 1"}}                  parameters
//
// Numbers that stand for themselves are values of their type, or errors. Fills are cast to it; a parameter keeps what
// its expression says, or that is an error.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plans/evaluate.hpp"
#include "plans/json_document.hpp"
#include "plans/model.hpp"

namespace kplan::cli {

/// The scalars of an element: itself, or a record's fields.
std::vector<Field> fields_of(const ElementType& type);

/// How the elements of one buffer are filled: an expression for each of `fields_of`, or values by rank.
struct BufferFill {
  std::vector<ExprPtr> expressions;  ///< empty where values are listed
  std::vector<SourceText> texts;
  std::map<std::int64_t, std::vector<ScalarValue>>
      values;  ///< row-major elements, field after field; key -1: every rank
  Origin origin;
};

struct ParameterFill {
  ExprPtr expression;
  SourceText text;
};

class DataDocument {
 public:
  /// Reads and checks the document against the plan. Throws PlanError with a KP-D, KP-J or KP-P code that says where.
  DataDocument(const PlanModel& plan, const std::string& file);

  const std::string& file() const { return file_; }
  const BufferFill* buffer(std::size_t b) const;
  const ParameterFill* parameter(std::size_t p) const;

 private:
  BufferFill read_buffer(const Buffer& buffer, const JsonPlace& place) const;
  ParameterFill read_parameter(const Parameter& parameter, const JsonPlace& place) const;
  ExprPtr read_expression(const JsonPlace& place, const std::vector<std::string>& variables, Scalar type,
                          SourceText& text) const;

  std::string file_;
  PlanModel named_plan_;  ///< the plan under the document's name, for messages about the document's expressions
  std::map<std::size_t, BufferFill> buffers_;
  std::map<std::size_t, ParameterFill> parameters_;
};

}  // namespace kplan::cli
