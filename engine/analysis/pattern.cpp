// How it works: the solver gives boxes of environments for each peer; each box and each buffer reference becomes a
// piece: subscripts that are affine over the box give strides, slices add dimensions, everything else is listed element
// by element and compressed again. Both ends walk environments in where-list order, so their elements meet.
#include "engine/analysis/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "engine/analysis/affine_reference.hpp"
#include "engine/analysis/box_order.hpp"
#include "engine/analysis/expressions.hpp"
#include "engine/analysis/solver.hpp"

namespace kplan {
namespace {

constexpr std::int64_t most_message_elements = std::int64_t{1} << 40, most_message_bytes = std::int64_t{1} << 36;
/// Where no closed form is found: environments and elements that are looked at one by one, and those that are kept in a
/// map.
constexpr std::int64_t most_listed = std::int64_t{1} << 28, most_sorted = std::int64_t{1} << 22;

/// What one track follows: a buffer reference, or a where-bound number.
struct TrackSource {
  const Expr* element = nullptr;
  int number = -1;
};

class PatternFinder {
 public:
  PatternFinder(const BoundPlan& bound, const Statement& s)
      : bound_(bound),
        s_(s),
        formula_(Knowing{bound.model.get(), &s, bound.state.size, &bound.state}),
        solver_(formula_),
        compares_ends_(may_ends_differ(*bound.model, s)) {}

  StatementPattern find() {
    StatementPattern out;
    for (const Reduction& r : s_.reductions) {
      out.values.push_back(value_form(r));
      places_.push_back(with_rank(r.place, bound_.state.rank));
    }
    check_deciders();
    for (const bool as_sender : {true, false}) {
      std::map<std::int64_t, Flow> flows;
      for (std::size_t k = 0; k < s_.reductions.size(); ++k) add_reduction(k, as_sender, out.values[k], flows);
      auto& list = as_sender ? out.sends : out.receives;
      for (auto& [peer, flow] : flows) {
        flow.peer = peer;
        if (!flow.segments.empty()) list.push_back(std::move(flow));
      }
    }
    return out;
  }

  /// Calls f(peer, box) for what this rank receives by one reduction.
  template <class F>
  void each_received(std::size_t k, const F& f) {
    if (places_.empty())
      for (const Reduction& r : s_.reductions) places_.push_back(with_rank(r.place, bound_.state.rank));
    for (const Solution& solution : solver_.solve({&s_.reductions[k], bound_.state.rank, false}))
      f(solution.peer, solution.box);
  }

  /// The environments of one reduction from `sender` to this rank, in order: positions, and the number of elements.
  std::vector<EnvironmentKey> keys(std::size_t k, std::int64_t sender) {
    std::map<std::vector<std::int64_t>, std::int64_t> in_order;
    std::vector<ScalarValue> variables;
    each_received(k, [&](std::int64_t peer, const Box& box) {
      if (peer != sender) return;
      spend(box, most_sorted);
      each_environment(box, [&](const std::vector<std::int64_t>& indices) {
        std::vector<std::int64_t> key;
        for (std::size_t n = 1; n < indices.size(); ++n) key.push_back(box.positions[n][indices[n]]);
        in_order[std::move(key)] = static_cast<std::int64_t>(place_at(k, box, indices, variables).size());
        return true;
      });
    });
    std::vector<EnvironmentKey> out;
    for (auto& [key, count] : in_order) out.push_back({key, count});
    return out;
  }

  /// The place's elements in the one environment of a box and indices.
  std::vector<std::int64_t> place_at(std::size_t k, const Box& box, const std::vector<std::int64_t>& indices,
                                     std::vector<ScalarValue>& variables) {
    RankState state = bound_.state;
    variables.resize(s_.variables.size());
    formula_.values_at(box, indices, state, variables);
    return select(*places_[k], {.state = &state, .variables = variables.data()});
  }

  [[noreturn]] void rethrow(const SolverFault& f) const {
    RankState state = bound_.state;
    std::vector<ScalarValue> variables(s_.variables.size());
    std::string environment;
    formula_.values_at(f.box, {}, state, variables);
    for (const Clause& c : s_.clauses) {
      if (c.kind == ClauseKind::filter) continue;
      const auto v = static_cast<std::size_t>(c.variable);
      const bool is_known = c.kind == ClauseKind::binding
                                ? formula_.is_single(*c.expression, f.box)
                                : f.box.sets[v + 1].is_known && f.box.positions[v + 1].count == 1;
      if (is_known)
        environment +=
            fmt::format("{}{} = {}", environment.empty() ? "" : ", ", s_.variables[v].name, to_text(variables[v]));
    }
    const std::string message =
        fmt::format("{} when {}{}rank {}{}{}", f.fault.message, environment, environment.empty() ? "" : ", ",
                    state.rank, f.fault.advice.empty() ? "" : "; ", f.fault.advice);
    if (f.fault.code == "KP-R001")
      throw RunError(f.fault.code, fmt::format("plan {}, statement {}: {}", bound_.model->name, s_.name, message));
    throw error_in(*bound_.model, s_, f.fault.span, f.fault.code, message);
  }

 private:
  ValueForm value_form(const Reduction& r) const {
    ValueForm out;
    out.value = with_bindings(with_rank(r.value, bound_.state.rank), s_);
    out.elements = elements_read(*out.value);
    std::set<int> numbers;
    const std::function<void(const Expr&)> collect = [&](const Expr& e) {
      if (e.kind == ExprKind::element) return;
      if (e.kind == ExprKind::rank) numbers.insert(0);
      if (e.kind == ExprKind::variable) numbers.insert(e.id + 1);
      for (const auto& o : e.operands) collect(*o);
    };
    collect(*out.value);
    out.numbers.assign(numbers.begin(), numbers.end());
    return out;
  }

  /// Language.md section 3: a deciding rank outside the group is an error, on whichever rank evaluates it.
  void check_deciders() const {
    for (const Reduction& r : s_.reductions) {
      const Expr& decider = s_.is_pull ? *r.receiver : *r.sender;
      const auto outside = [&](const Box& box) {
        const StridedInterval v = formula_.range_of(decider, box);
        if (v.lo >= 0 && v.hi < bound_.state.size) return StridedInterval::single(0);
        if (v.hi < 0 || v.lo >= bound_.state.size) return StridedInterval::single(1);
        return StridedInterval{0, 1, 1};
      };
      bool is_complete = true;
      const auto box =
          solver_.find(outside, formula_.mask_of(decider), bound_.state.rank, std::int64_t{1} << 22, is_complete);
      if (!is_complete)
        throw SolverFault{
            {"KP-A010", "whether this is always a rank of the group takes too long to find out", decider.span},
            formula_box(bound_.state.rank)};
      if (!box) continue;
      throw SolverFault{rank_outside_group(s_.is_pull ? "receiver" : "sender", formula_.range_of(decider, *box).lo,
                                           bound_.state.size, decider.span),
                        *box};
    }
  }

  void add_reduction(std::size_t k, bool as_sender, const ValueForm& value, std::map<std::int64_t, Flow>& flows) {
    const Reduction& r = s_.reductions[k];
    std::map<std::int64_t, std::vector<Box>> by_peer;
    for (Solution& solution : solver_.solve({&r, bound_.state.rank, as_sender}))
      by_peer[solution.peer].push_back(std::move(solution.box));
    std::vector<TrackSource> sources;
    if (as_sender) {
      for (const Expr* e : value.elements) sources.push_back({e, -1});
      for (const int n : value.numbers) sources.push_back({nullptr, n});
    } else {
      sources.push_back({places_[k].get(), -1});
    }
    for (auto& [peer, boxes] : by_peer) {
      for (const Box& box : boxes)
        if (!as_sender) check_counts(k, box, peer);
      Segment segment;
      segment.reduction = static_cast<int>(k);
      if (compares_ends_) segment.digest = digest(k, boxes, as_sender ? &value : nullptr);
      segment.pieces = pieces_of(std::move(boxes), sources);
      for (const Piece& p : segment.pieces) segment.element_count += p.element_count();
      if (segment.element_count > most_message_elements)
        throw SolverFault{
            {"KP-A011", fmt::format("one message would have {} elements, at most 2^40 are sent", segment.element_count),
             r.span},
            formula_box(peer)};
      if (static_cast<Wide>(segment.element_count) * static_cast<std::int64_t>(r.value_type.size_bytes) >
          most_message_bytes)
        throw SolverFault{{"KP-A011",
                           fmt::format("one message would have {} elements of {} bytes, at most 64 GiB are sent",
                                       segment.element_count, r.value_type.size_bytes),
                           r.span},
                          formula_box(peer)};
      if (segment.element_count > 0) flows[peer].segments.push_back(std::move(segment));
    }
  }

  Box formula_box(std::int64_t evaluator) const {
    Box box;
    box.positions.resize(s_.variables.size() + 1);
    box.sets.resize(s_.variables.size() + 1);
    box.sets[0] = {true, 0, 1, bound_.state.size, nullptr, {}};
    box.positions[0] = {evaluator, 1, 1};
    return box;
  }

  std::vector<Piece> pieces_of(std::vector<Box> boxes, const std::vector<TrackSource>& sources) {
    if (!are_in_order(boxes)) boxes = joined(std::move(boxes));
    std::vector<Piece> out;
    if (!are_in_order(boxes)) {
      listed_in_order(boxes, sources, out);
    } else {
      for (const Box& box : boxes) {
        if (auto piece = affine_piece(box, sources)) append(out, std::move(*piece));
        else listed(box, sources, out);
      }
    }
    for (Piece& p : out) simplify(p);
    return out;
  }

  // Strided pieces.

  std::optional<Piece> affine_piece(const Box& box, const std::vector<TrackSource>& sources) {
    std::vector<AffineReference> references;
    for (const TrackSource& source : sources) {
      auto reference =
          source.element ? affine_element(formula_, bound_.state.layouts[static_cast<std::size_t>(source.element->id)],
                                          *source.element, box)
                         : affine_number(source.number, box);
      if (!reference) return std::nullopt;
      references.push_back(std::move(*reference));
    }
    Piece out;
    Wide environments = 1;
    for (const Progression& p : box.positions)
      environments = std::min<Wide>(environments * p.count, most_message_elements + 1);
    if (environments > most_message_elements)
      throw SolverFault{{"KP-A011", "one message would have more than 2^40 elements",
                         s_.text.text.empty() ? Span{} : s_.reductions[0].span},
                        box};
    const auto slices = refine_slices(references);
    if (!slices) return std::nullopt;
    for (const Progression& p : box.positions) out.counts.push_back(p.count);
    for (const std::int64_t c : *slices) out.counts.push_back(c);
    for (const AffineReference& r : references) {
      Track track{{r.base}, r.strides};
      for (const SliceDimension& d : r.slices) track.strides.push_back(d.stride);
      out.tracks.push_back(std::move(track));
    }
    if (sources.empty()) out.tracks.clear();
    return out;
  }

  // Listed pieces.

  using Bases = std::vector<std::vector<std::int64_t>>;  ///< by track, of the elements of one environment

  Bases bases_at(const Box& box, const std::vector<std::int64_t>& indices, const std::vector<TrackSource>& sources) {
    formula_.values_at(box, indices, state_, variables_);
    const EvaluationContext context{.state = &state_, .variables = variables_.data()};
    Bases out;
    std::size_t count = 1;
    for (const TrackSource& source : sources) {
      std::vector<std::int64_t> bases;
      if (source.element) {
        try {
          bases = select(*source.element, context);
        } catch (const EvaluationFault& f) {
          throw SolverFault{f, single(box, indices)};
        }
        for (std::int64_t& b : bases)
          b = b * static_cast<std::int64_t>(source.element->element_bytes) +
              static_cast<std::int64_t>(source.element->field_offset_bytes);
      } else {
        const auto n = static_cast<std::size_t>(source.number);
        bases = {Formula::value_at(box, n, box.positions[n][indices[n]])};
      }
      if (bases.size() != 1) {
        if (count != 1 && count != bases.size())
          throw SolverFault{
              {"KP-P058", fmt::format("slices of {} and of {} elements stand in one value", count, bases.size()),
               source.element->span},
              single(box, indices)};
        count = bases.size();
      }
      out.push_back(std::move(bases));
    }
    for (auto& bases : out)
      if (bases.size() == 1) bases.assign(count, bases[0]);
    if (count > 1) spend(static_cast<Wide>(count), most_listed, single(box, indices));
    return out;
  }

  /// Counts what is done one by one, so that it ends.
  void spend(Wide count, std::int64_t most, const Box& box) {
    if (count + listed_ > most)
      throw SolverFault{
          {"KP-A011",
           fmt::format("more than {} environments and elements have to be looked at one by one, for want "
                       "of a closed form; simpler subscripts, or generators in another order, may have one",
                       most),
           s_.reductions[0].span},
          box};
    listed_ += static_cast<std::int64_t>(count);
  }
  void spend(const Box& box, std::int64_t most) {
    Wide count = 1;
    for (const Progression& p : box.positions) count = std::min<Wide>(count * p.count, most_message_elements);
    spend(count, most, box);
  }

  static Box single(const Box& box, const std::vector<std::int64_t>& indices) {
    Box out = box;
    for (std::size_t n = 0; n < out.positions.size(); ++n) out.positions[n] = {box.positions[n][indices[n]], 1, 1};
    return out;
  }

  static void append_bases(std::vector<Piece>& out, const Bases& bases, std::size_t track_count) {
    const std::size_t count = bases.empty() ? 1 : bases[0].size();
    if (count == 0) return;
    Piece piece;
    piece.list_length = static_cast<std::int64_t>(count);
    for (std::size_t t = 0; t < track_count; ++t) piece.tracks.push_back({bases[t], {}});
    append(out, std::move(piece));
  }

  void listed(const Box& box, const std::vector<TrackSource>& sources, std::vector<Piece>& out) {
    prepare_state();
    spend(box, most_listed);
    each_environment(box, [&](const std::vector<std::int64_t>& indices) {
      append_bases(out, bases_at(box, indices, sources), sources.size());
      return true;
    });
  }

  void listed_in_order(const std::vector<Box>& boxes, const std::vector<TrackSource>& sources,
                       std::vector<Piece>& out) {
    prepare_state();
    std::map<std::vector<std::int64_t>, Bases> in_order;
    for (const Box& box : boxes) {
      spend(box, most_sorted);
      each_environment(box, [&](const std::vector<std::int64_t>& indices) {
        std::vector<std::int64_t> key;
        for (std::size_t n = 0; n < indices.size(); ++n) key.push_back(box.positions[n][indices[n]]);
        in_order[std::move(key)] = bases_at(box, indices, sources);
        return true;
      });
    }
    for (const auto& [key, bases] : in_order) append_bases(out, bases, sources.size());
  }

  void prepare_state() {
    state_ = bound_.state;
    variables_.assign(s_.variables.size(), {});
  }

  // Agreement of the two ends.

  /// Language.md section 2: both sides of a reduction have the same number of elements. Looked at on the receiver,
  /// which replays the sender; where that takes the sender's private data, the ends compare counts when the plan is
  /// compiled.
  void check_counts(std::size_t k, const Box& box, std::int64_t sender) {
    const Reduction& r = s_.reductions[k];
    const auto elements = elements_read(*r.value);
    if (!has_many(*r.place) && std::ranges::none_of(elements, [&](const Expr* e) { return has_many(*e); })) return;
    if (std::ranges::any_of(elements, [&](const Expr* e) { return has_private_count(*bound_.model, *e); })) return;
    std::vector<const Expr*> values;
    for (const Expr* e : elements) {
      kept_.push_back(with_rank(std::make_shared<const Expr>(*e), sender));
      values.push_back(kept_.back().get());
    }
    const Layout& place_layout = bound_.state.layouts[static_cast<std::size_t>(r.place->id)];
    const std::vector<Layout>& value_layouts = layouts_at(sender);
    const auto place = element_count_of(formula_, place_layout, *places_[k], box);
    std::vector<std::int64_t> counts;
    for (const Expr* e : values) {
      const auto count = element_count_of(formula_, value_layouts[static_cast<std::size_t>(e->id)], *e, box);
      if (count) counts.push_back(*count);
    }
    if (place && counts.size() == values.size()) return conform(r, *place, counts, box);
    // No closed form: environment by environment.
    prepare_state();
    spend(box, most_listed);
    each_environment(box, [&](const std::vector<std::int64_t>& indices) {
      formula_.values_at(box, indices, state_, variables_);
      const EvaluationContext context{.state = &state_, .variables = variables_.data()};
      counts.clear();
      for (const Expr* e : values)
        counts.push_back(element_count_at(value_layouts[static_cast<std::size_t>(e->id)], *e, context));
      conform(r, element_count_at(place_layout, *places_[k], context), counts, single(box, indices));
      return true;
    });
  }

  /// All slices of a value are of one length (or of one element), and the place of the same.
  static void conform(const Reduction& r, std::int64_t place, const std::vector<std::int64_t>& counts, const Box& box) {
    std::int64_t value = 1;
    for (const std::int64_t count : counts) {
      if (count < 0) return;  // an error of its own, met where elements are selected
      if (count != 1 && value != 1 && count != value)
        throw SolverFault{
            {"KP-P058", fmt::format("slices of {} and of {} elements stand in one value", value, count), r.value->span},
            box};
      if (count != 1) value = count;
    }
    if (place >= 0 && place != value)
      throw SolverFault{{"KP-P059",
                         fmt::format("a value of {} element{} does not conform to a place of {} element{}", value,
                                     value == 1 ? "" : "s", place, place == 1 ? "" : "s"),
                         r.span},
                        box};
  }

  /// Whether the reference can name more than one element.
  bool has_many(const Expr& e) const {
    if (e.subscripts.empty()) return !bound_.model->buffers[static_cast<std::size_t>(e.id)].shape.empty();
    return std::ranges::any_of(e.subscripts, [](const Subscript& sub) { return sub.is_slice; });
  }

  const std::vector<Layout>& layouts_at(std::int64_t rank) {
    auto& layouts = layouts_[rank];
    if (layouts.empty()) layouts = layouts_of(*bound_.model, rank, bound_.state.size, bound_.state.parameters);
    return layouts;
  }

  /// What both ends of a message must agree on: the elements of each environment, in order, and the where-bound values
  /// that the end which does not evaluate the where-list uses. `value`: at the sender.
  std::uint64_t digest(std::size_t k, const std::vector<Box>& boxes, const ValueForm* value) {
    const Reduction& r = s_.reductions[k];
    std::set<int> used;
    visit(s_.is_pull ? *r.value : *r.place, [&](const Expr& e) {
      if (e.kind == ExprKind::variable) used.insert(e.id);
    });
    prepare_state();
    std::map<std::vector<std::int64_t>, std::uint64_t> in_order;
    for (const Box& box : boxes) {
      spend(box, most_sorted);
      each_environment(box, [&](const std::vector<std::int64_t>& indices) {
        formula_.values_at(box, indices, state_, variables_);
        const EvaluationContext context{.state = &state_, .variables = variables_.data()};
        std::int64_t count = 1;
        const auto counted = [&](const Expr& e) {
          const std::int64_t c = element_count_at(bound_.state.layouts[static_cast<std::size_t>(e.id)], e, context);
          if (c != 1) count = c;
        };
        if (!value) counted(*places_[k]);
        else
          for (const Expr* e : value->elements) counted(*e);
        std::vector<std::int64_t> key;
        for (std::size_t n = 0; n < indices.size(); ++n) key.push_back(box.positions[n][indices[n]]);
        std::uint64_t h = static_cast<std::uint64_t>(count);
        for (const int v : used)
          h = mixed(mixed(h, variables_[static_cast<std::size_t>(v)].bits[0]),
                    variables_[static_cast<std::size_t>(v)].bits[1]);
        in_order[std::move(key)] = h;
        return true;
      });
    }
    std::uint64_t out = in_order.size();
    for (const auto& [key, h] : in_order) out = mixed(out, h);
    return out;
  }

  const BoundPlan& bound_;
  const Statement& s_;
  Formula formula_;
  Solver solver_;
  bool compares_ends_;
  std::vector<ExprPtr> places_;
  std::vector<ExprPtr> kept_;  ///< the formula remembers expressions by address
  std::map<std::int64_t, std::vector<Layout>> layouts_;
  RankState state_;
  std::vector<ScalarValue> variables_;
  std::int64_t listed_ = 0;
};

}  // namespace

StatementPattern find_pattern(const BoundPlan& bound, const Statement& s) {
  PatternFinder finder(bound, s);
  try {
    return finder.find();
  } catch (const SolverFault& f) {
    finder.rethrow(f);
  }
}

std::uint64_t mixed(std::uint64_t h, std::uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdu;
  return h ^ (h >> 32);
}

bool may_ends_differ(const PlanModel& plan, const Statement& s) {
  if (infer_knowledge(plan, s).knowledge != KnowledgeClass::global) return true;
  bool out = false;
  for (const Reduction& r : s.reductions)
    for (const Expr* side : {r.place.get(), r.value.get()})
      visit(*side, [&](const Expr& e) {
        out = out || (e.kind == ExprKind::element && !e.is_index && has_private_count(plan, e));
      });
  return out;
}

std::string environment_at(const BoundPlan& bound, const Statement& s, std::int64_t sender, int reduction,
                           std::int64_t offset_bytes, int occurrence) {
  PatternFinder finder(bound, s);
  std::string out;
  const auto k = static_cast<std::size_t>(reduction);
  const Expr& place = *s.reductions[k].place;
  try {
    finder.each_received(k, [&](std::int64_t peer, const Box& box) {
      if (peer != sender || !out.empty()) return;
      each_environment(box, [&](const std::vector<std::int64_t>& indices) {
        std::vector<ScalarValue> variables;
        for (const std::int64_t element : finder.place_at(k, box, indices, variables)) {
          if (element * static_cast<std::int64_t>(place.element_bytes) +
                  static_cast<std::int64_t>(place.field_offset_bytes) !=
              offset_bytes)
            continue;
          if (occurrence-- > 0) continue;
          out = environment_text(s, variables, static_cast<int>(variables.size()));
          return false;
        }
        return true;
      });
    });
  } catch (const SolverFault&) {
    // The message does without the environment.
  }
  return out;
}

std::vector<EnvironmentKey> environment_keys(const BoundPlan& bound, const Statement& s, std::int64_t sender,
                                             int reduction) {
  PatternFinder finder(bound, s);
  try {
    return finder.keys(static_cast<std::size_t>(reduction), sender);
  } catch (const SolverFault& f) {
    finder.rethrow(f);
  }
}

}  // namespace kplan
