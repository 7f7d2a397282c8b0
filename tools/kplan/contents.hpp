#pragma once
// What every rank's parameters and buffers hold before a run: from --set, from the data document, or by default values
// in which every element of every rank is another. Anyone can work it out for any rank.

#include <memory>
#include <optional>

#include "kplan/engine.hpp"
#include "kplan/plan.hpp"
#include "tools/kplan/data_document.hpp"
#include "tools/kplan/options.hpp"
#include "tools/kplan/rank_memory.hpp"

namespace kplan::cli {

/// Immutable; thread-safe.
class Contents {
 public:
  /// Reads --set and --data, or the document beside the plan. Throws PlanError.
  Contents(const Plan& plan, const Options& options);

  const Plan& plan() const { return plan_; }

  /// What is given to compile: parameters, and those fixed buffers that the data document fills.
  Values values(std::int64_t rank, std::int64_t size) const;
  /// The memory of all buffers, filled. Every parameter must have a value.
  RankMemory memory(std::int64_t rank, std::int64_t size) const;
  /// Whether the buffer's contents are handed to compile, and not bound.
  bool is_given(std::size_t b) const;
  /// The varying buffers that decide patterns and that nothing is said of: their contents are the default values.
  std::vector<std::string> made_up() const;

 private:
  using Parameters = std::vector<std::optional<ScalarValue>>;
  void read_setting(const std::string& setting);
  Parameters parameters(std::int64_t rank, std::int64_t size) const;
  /// The expression's value; an error where the parameter's type does not have it.
  ScalarValue parameter_value(const Parameter& parameter, const ParameterFill& fill, const RankState& state) const;
  RankState state(std::int64_t rank, std::int64_t size, const Parameters& parameters) const;
  BufferMemory filled(std::size_t b, const RankState& state) const;
  void fill_by_expressions(const BufferFill& fill, const Buffer& buffer, const RankState& state, const Layout& layout,
                           std::span<std::byte> memory) const;
  void fill_by_values(const BufferFill& fill, const Buffer& buffer, const RankState& state, const Layout& layout,
                      std::span<std::byte> memory) const;
  void fill_by_default(std::size_t b, const RankState& state, const Layout& layout, std::span<std::byte> memory) const;
  ScalarValue evaluated(const Expr& e, const SourceText& text, const RankState& state, const ScalarValue* indices,
                        const std::string& what) const;

  Plan plan_;
  std::vector<std::pair<std::string, Value>> settings_;
  std::unique_ptr<DataDocument> data_;
};

}  // namespace kplan::cli
