#pragma once
// Ranks for tests of the reference interpreter: typed access to their parameters and buffers by name.

#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "kplan/plan.hpp"
#include "plans/model.hpp"
#include "plans/reference.hpp"

namespace kplan::test {

/// A plan of the given declarations (members of the JSON object) and one statement.
inline Plan plan_of(const std::string& declarations, const std::string& communicate, const std::string& options = "") {
  return Plan::parse(R"({"kplan": 1, "name": "test", )" + declarations + (declarations.empty() ? "" : ", ") +
                         R"("statements": [{"communicate": ")" + communicate + "\"" +
                         (options.empty() ? "" : ", " + options) + "}]}",
                     "test");
}

class SimulatedRanks {
 public:
  /// `parameter(name, rank)` gives the values of parameters without a default, as integers. Buffers begin as zeros.
  SimulatedRanks(const Plan& plan, int count,
                 const std::function<std::int64_t(const std::string&, int)>& parameter = {})
      : plan_(plan), world_(static_cast<std::size_t>(count)) {
    for (int r = 0; r < count; ++r) {
      ReferenceRank& rank = world_[static_cast<std::size_t>(r)];
      for (const Parameter& p : model().parameters)
        rank.parameters.push_back(p.default_value ? *p.default_value
                                                  : convert(ScalarValue::integer(parameter(p.name, r)), p.type));
      const auto layouts = layouts_of(model(), r, count, rank.parameters);
      for (std::size_t b = 0; b < layouts.size(); ++b)
        rank.buffers.emplace_back(static_cast<std::size_t>(layouts[b].extent) * model().buffers[b].type.size_bytes);
    }
  }

  int count() const { return static_cast<int>(world_.size()); }
  const PlanModel& model() const { return plan_.model(); }
  std::vector<ReferenceRank>& world() { return world_; }
  std::vector<std::byte>& bytes(const std::string& buffer, int rank) {
    return world_[static_cast<std::size_t>(rank)].buffers[static_cast<std::size_t>(model().find_buffer(buffer))];
  }

  template <class T>
  void set(const std::string& buffer, int rank, const std::vector<T>& values) {
    auto& memory = bytes(buffer, rank);
    if (memory.size() != values.size() * sizeof(T))
      throw std::logic_error("the buffer " + buffer + " has another size");
    if (!values.empty()) std::memcpy(memory.data(), values.data(), memory.size());
  }
  template <class T>
  std::vector<T> get(const std::string& buffer, int rank) {
    const auto& memory = bytes(buffer, rank);
    std::vector<T> out(memory.size() / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), memory.data(), out.size() * sizeof(T));
    return out;
  }

  void run(const ReferenceLimits& limits = {}) { run_reference(model(), world_, limits); }
  /// The message of the error that the run ends with; nothing when it does not.
  std::string error() {
    try {
      run();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

 private:
  Plan plan_;
  std::vector<ReferenceRank> world_;
};

/// `count` numbers from `first` on.
inline std::vector<double> numbers(int count, double first) {
  std::vector<double> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), first);
  return out;
}

/// Two buffers with an element for each rank.
inline const std::string two_f64 =
    R"("buffers": {"A": {"type": "f64", "shape": ["size"]}, "B": {"type": "f64", "shape": ["size"]}})";

}  // namespace kplan::test
