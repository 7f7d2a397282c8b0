// How it works: for each statement, every rank of the group walks its where-list (language.md section 3) and,
// for the environments in which it is the sender (pull: the receiver), makes a transfer with the values read. When
// all reads are done, transfers are applied in ascending sender rank, environment order, position.
#include "plans/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "plans/diagnostic.hpp"
#include "plans/evaluate.hpp"

namespace kplan {
namespace {

/// One reduction in one environment, values read and places found. Ranks are numbers of the world here.
struct Transfer {
  std::size_t sender = 0, receiver = 0;
  std::size_t sender_number = 0;  ///< within the statement's group
  std::int64_t environment = 0;   ///< its number in the order of the rank that evaluates
  std::size_t reduction = 0;
  std::vector<std::int64_t> places;  ///< offsets in elements
  std::vector<std::byte> values;     ///< elements of the place's type
  std::string environment_text;
};

class Interpreter {
 public:
  Interpreter(const PlanModel& plan, std::vector<ReferenceRank>& world, const ReferenceLimits& limits)
      : plan_(plan), world_(world), limits_(limits), states_(world.size()) {
    for (std::size_t r = 0; r < world.size(); ++r) {
      states_[r].parameters = world[r].parameters;
      states_[r].layouts =
          layouts_of(plan, static_cast<std::int64_t>(r), static_cast<std::int64_t>(world.size()), world[r].parameters);
      for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
        if (world[r].buffers[b].size() !=
            static_cast<std::size_t>(states_[r].layouts[b].extent) * plan.buffers[b].type.size_bytes)
          throw InternalError("KP-I002",
                              "the reference interpreter was given memory of another size than the layout's");
        static const std::byte nothing{};  // a null pointer would mean that the contents are unknown
        const auto& bytes = world[r].buffers[b];
        states_[r].contents.push_back(bytes.empty() ? &nothing : bytes.data());
      }
    }
  }

  void run() {
    for (const Statement& s : plan_.statements) run(s);
  }

 private:
  void run(const Statement& s) {
    transfers_.clear();
    const auto groups = groups_of(s);
    for (const auto& members : groups) {
      for (std::size_t k = 0; k < members.size(); ++k) {
        states_[members[k]].rank = static_cast<std::int64_t>(k);
        states_[members[k]].size = static_cast<std::int64_t>(members.size());
      }
      for (std::size_t k = 0; k < members.size(); ++k) collect(s, members, k);
    }
    std::ranges::stable_sort(transfers_, {},
                             [](const Transfer& t) { return std::tuple(t.sender_number, t.environment, t.reduction); });
    apply(s);
  }

  /// The members of each group of the statement, in the order of their numbers within it.
  std::vector<std::vector<std::size_t>> groups_of(const Statement& s) {
    for (std::size_t r = 0; r < world_.size(); ++r) {
      states_[r].rank = static_cast<std::int64_t>(r);
      states_[r].size = static_cast<std::int64_t>(world_.size());
    }
    std::vector<std::size_t> everyone(world_.size());
    for (std::size_t r = 0; r < everyone.size(); ++r) everyone[r] = r;
    if (s.group < 0) return {everyone};
    const Group& g = plan_.groups[static_cast<std::size_t>(s.group)];
    std::map<std::int64_t, std::vector<std::pair<std::int64_t, std::size_t>>> by_color;
    for (const std::size_t r : everyone) {
      try {
        const EvaluationContext context{.state = &states_[r]};
        const std::int64_t color = evaluate_index(*g.color, context);
        if (color >= 0) by_color[color].emplace_back(evaluate_index(*g.key, context), r);
      } catch (const EvaluationFault& f) {
        throw PlanError(f.code, fmt::format("plan {}, group `{}` on rank {}: {}", plan_.name, g.name, r, f.message));
      }
    }
    std::vector<std::vector<std::size_t>> out;
    for (auto& [color, members] : by_color) {
      std::ranges::sort(members);
      out.emplace_back();
      for (const auto& [key, r] : members) out.back().push_back(r);
    }
    return out;
  }

  /// The transfers that member number `me` of the group decides on: its sends, or its receives for a pull.
  void collect(const Statement& s, const std::vector<std::size_t>& members, std::size_t me) {
    std::int64_t number = 0;
    std::vector<ScalarValue> faulty;
    int bound = 0;
    try {
      for_each_environment(
          s, states_[members[me]],
          [&](const std::vector<ScalarValue>& variables) {
            faulty = variables;
            bound = static_cast<int>(variables.size());
            for (std::size_t k = 0; k < s.reductions.size(); ++k) transfer(s, k, members, me, number, variables);
            ++number;
            return true;
          },
          &faulty, &bound, limits_.step_count);
    } catch (const EvaluationFault& f) {
      const std::string environment = environment_text(s, faulty, bound);
      const std::string message =
          f.message + when(environment, members[me]) + (f.advice.empty() ? "" : "; " + f.advice);
      if (f.code == "KP-R001")
        throw RunError(f.code, place_in(plan_.source.document, s.text, f.span) + message,
                       underline(s.text.text, f.span));
      throw error_in(plan_, s, f.span, f.code, message);
    }
  }

  /// ` when i = 3, rank 1`, or ` on rank 1`.
  static std::string when(const std::string& environment, std::size_t rank) {
    return environment.empty() ? fmt::format(" on rank {}", rank) : fmt::format(" when {}, rank {}", environment, rank);
  }

  void transfer(const Statement& s, std::size_t k, const std::vector<std::size_t>& members, std::size_t me,
                std::int64_t number, const std::vector<ScalarValue>& variables) {
    const Reduction& r = s.reductions[k];
    if (r.is_native)
      throw Unsupported(
          "KP-U001",
          place_in(plan_.source.document, s.text, r.span) +
              fmt::format("the operator `{}` is a C++ function, which only the engine can call", r.operator_name),
          underline(s.text.text, r.span));
    const EvaluationContext here{.state = &states_[members[me]], .variables = variables.data()};
    const std::int64_t decider = evaluate_index(s.is_pull ? *r.receiver : *r.sender, here);
    check_rank(s.is_pull ? *r.receiver : *r.sender, decider, members, s.is_pull ? "receiver" : "sender");
    if (decider != static_cast<std::int64_t>(me)) return;
    const std::int64_t other = evaluate_index(s.is_pull ? *r.sender : *r.receiver, here);
    check_rank(s.is_pull ? *r.sender : *r.receiver, other, members, s.is_pull ? "sender" : "receiver");
    Transfer t;
    t.sender = s.is_pull ? static_cast<std::size_t>(other) : me;
    t.receiver = s.is_pull ? me : static_cast<std::size_t>(other);
    t.environment = number;
    t.reduction = k;
    t.environment_text = environment_text(s, variables, static_cast<int>(variables.size()));
    const EvaluationContext at_sender{.state = &states_[members[t.sender]], .variables = variables.data()};
    const EvaluationContext at_receiver{.state = &states_[members[t.receiver]], .variables = variables.data()};
    t.places = select(*r.place, at_receiver);
    read_values(r, at_sender, t);
    t.sender_number = t.sender;
    t.sender = members[t.sender];
    t.receiver = members[t.receiver];
    element_count_ += t.places.size();
    if (element_count_ > limits_.element_count)
      throw error_in(
          plan_, s, r.span, "KP-P056",
          fmt::format(
              "the reference interpreter moves at most {} elements in a run; run the plan with smaller parameters",
              limits_.element_count));
    transfers_.push_back(std::move(t));
  }

  static void check_rank(const Expr& e, std::int64_t rank, const std::vector<std::size_t>& members, const char* what) {
    if (rank >= 0 && rank < static_cast<std::int64_t>(members.size())) return;
    throw rank_outside_group(what, rank, static_cast<std::int64_t>(members.size()), e.span);
  }

  void read_values(const Reduction& r, const EvaluationContext& at_sender, Transfer& t) {
    std::map<const Expr*, std::vector<std::int64_t>> selections;
    std::size_t count = 1;
    for (const Expr* e : elements_read(*r.value)) {
      auto offsets = select(*e, at_sender);
      if (offsets.size() != 1) {
        if (count != 1 && count != offsets.size())
          throw EvaluationFault{
              "KP-P058", fmt::format("slices of {} and of {} elements stand in one value", count, offsets.size()),
              e->span};
        count = offsets.size();
      }
      selections[e] = std::move(offsets);
    }
    if (count != t.places.size())
      throw EvaluationFault{"KP-P059",
                            fmt::format("a value of {} element{} does not conform to a place of {} element{}", count,
                                        count == 1 ? "" : "s", t.places.size(), t.places.size() == 1 ? "" : "s"),
                            r.span};
    const std::size_t size = r.place_type.size_bytes;
    t.values.resize(count * size);
    EvaluationContext context = at_sender;
    context.selections = &selections;
    for (std::size_t k = 0; k < count; ++k) {
      std::byte* to = t.values.data() + k * size;
      if (r.value->record) {
        const auto& offsets = selections.at(r.value.get());
        const std::byte* from = context.state->contents[static_cast<std::size_t>(r.value->id)];
        std::memcpy(to, from + static_cast<std::size_t>(offsets[k]) * size, size);
      } else {
        context.position = k;
        convert(evaluate(*r.value, context), r.place_type.scalar).store(to);
      }
    }
  }

  void apply(const Statement& s) {
    // What has been written so far, by (receiver, buffer, first byte): the transfer that assigned, or null after other
    // operators.
    std::map<std::tuple<std::size_t, int, std::size_t>, const Transfer*> assigned;
    std::set<std::tuple<std::size_t, int, std::size_t>> touched;
    std::vector<std::byte> updated;
    for (const Transfer& t : transfers_) {
      const Reduction& r = s.reductions[t.reduction];
      std::byte* memory = world_[t.receiver].buffers[static_cast<std::size_t>(r.place->id)].data();
      const std::size_t size = r.place_type.size_bytes;
      for (std::size_t k = 0; k < t.places.size(); ++k) {
        const std::size_t first_byte =
            static_cast<std::size_t>(t.places[k]) * r.place->element_bytes + r.place->field_offset_bytes;
        std::byte* place = memory + first_byte;
        const std::byte* value = t.values.data() + k * size;
        const bool is_first = mark(s, t, r, first_byte, assigned, touched);
        if (r.is_assign || (s.is_fresh && is_first)) {
          std::memcpy(place, value, size);
          continue;
        }
        updated.assign(place, place + size);
        const EvaluationContext context{.left = place, .right = value, .operand_type = &r.place_type};
        for (const Update& u : r.updates) {
          const std::size_t offset =
              u.field < 0 ? 0 : r.place_type.fields[static_cast<std::size_t>(u.field)].offset_bytes;
          try {
            evaluate(*u.result, context).store(updated.data() + offset);
          } catch (const EvaluationFault& f) {
            throw RunError(f.code, fmt::format("plan {}, statement {}: operator `{}`: {}{}", plan_.name, s.name,
                                               r.operator_name, f.message, when(t.environment_text, t.sender)));
          }
        }
        std::memcpy(place, updated.data(), size);
      }
    }
  }

  /// Notes that the scalars of a place are written; whether all of them are written for the first time. Two assigns are
  /// an error.
  template <class Assigned, class Touched>
  bool mark(const Statement& s, const Transfer& t, const Reduction& r, std::size_t first_byte, Assigned& assigned,
            Touched& touched) {
    bool is_first = true;
    const auto mark_byte = [&](std::size_t byte) {
      const std::tuple key(t.receiver, r.place->id, byte);
      is_first = touched.insert(key).second && is_first;
      if (!r.is_assign) return;
      const auto [it, is_new] = assigned.emplace(key, &t);
      if (is_new) return;
      const auto assigning = [](const Transfer& by) {
        return Assigning{static_cast<std::int64_t>(by.sender), by.environment_text, by.reduction};
      };
      throw assigned_twice(plan_, s, static_cast<std::int64_t>(byte / r.place->element_bytes),
                           static_cast<std::int64_t>(t.receiver), assigning(*it->second), assigning(t));
    };
    if (!r.place_type.is_record()) mark_byte(first_byte);
    else
      for (const Field& f : r.place_type.fields) mark_byte(first_byte + f.offset_bytes);
    return is_first;
  }

  const PlanModel& plan_;
  std::vector<ReferenceRank>& world_;
  const ReferenceLimits limits_;
  std::vector<RankState> states_;
  std::vector<Transfer> transfers_;
  std::size_t element_count_ = 0;
};

}  // namespace

void run_reference(const PlanModel& plan, std::vector<ReferenceRank>& world, const ReferenceLimits& limits) {
  Interpreter(plan, world, limits).run();
}

}  // namespace kplan
