// How it works: the solver gives boxes of environments for each peer; each box and each buffer reference becomes a
// piece. Both ends walk environments in where-list order, so their elements meet.
#include "engine/analysis/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "engine/analysis/clause_faults.hpp"
#include "engine/analysis/enumeration.hpp"
#include "engine/analysis/expressions.hpp"
#include "engine/analysis/pattern_finder.hpp"
#include "plans/diagnostic.hpp"

namespace kplan {
namespace {

ValueForm value_form(const Reduction& r, const BoundPlan& bound, const Statement& s) {
  ValueForm out;
  out.value = with_bindings(with_rank(r.value, bound.state.rank), s);
  out.elements = elements_read(*out.value);
  std::set<int> numbers;
  const std::function<void(const Expr&)> collect = [&](const Expr& e) {
    if (e.kind == ExprKind::element) return;
    if (e.kind == ExprKind::rank) numbers.insert(0);
    if (e.kind == ExprKind::variable) numbers.insert(e.id + 1);
    for (const auto& o : e.operands) collect(*o);
  };
  collect(*out.value);
  for (const int n : numbers) out.numbers.push_back({n, 0});
  return out;
}

}  // namespace

PatternFinder::PatternFinder(const BoundPlan& bound, const Statement& s, const Knowledge& knowledge)
    : bound_(bound),
      s_(s),
      formula_(Knowing{bound.model.get(), &s, bound.state.size, &bound.state}),
      solver_(formula_),
      pieces_(bound, s, formula_),
      conformity_(bound, s, formula_, pieces_),
      is_told_(is_told(knowledge)),
      compares_ends_(may_ends_differ(*bound.model, s, knowledge)) {
  for (const Reduction& r : s_.reductions) {
    values_.push_back(value_form(r, bound_, s_));
    places_.push_back(with_rank(r.place, bound_.state.rank));
  }
}

std::map<std::int64_t, std::vector<Box>> PatternFinder::boxes_by_peer(const Reduction& r, bool as_sender) const {
  std::map<std::int64_t, std::vector<Box>> out;
  for (Solution& solution : solver_.solve({&r, bound_.state.rank, as_sender}))
    out[solution.peer].push_back(std::move(solution.box));
  return out;
}

std::vector<TrackSource> PatternFinder::sources_of(std::size_t k, bool as_sender) const {
  std::vector<TrackSource> out;
  if (!as_sender) return {{.element = places_[k].get(), .counted = {}}};
  for (const Expr* e : values_[k].elements) out.push_back({.element = e, .counted = {}});
  for (const NumberUse& n : values_[k].numbers)
    out.push_back({.kind = TrackSource::Kind::number, .number = n.number, .counted = {}});
  return out;
}

std::vector<const Expr*> PatternFinder::counted(std::size_t k, bool as_sender) const {
  return as_sender ? values_[k].elements : std::vector<const Expr*>{places_[k].get()};
}

std::vector<Flow> PatternFinder::flows(bool as_sender) {
  std::map<std::int64_t, Flow> flows;
  for (std::size_t k = 0; k < s_.reductions.size(); ++k) add_reduction(k, as_sender, flows);
  std::vector<Flow> out;
  for (auto& [peer, flow] : flows) {
    flow.peer = peer;
    if (!flow.segments.empty()) out.push_back(std::move(flow));
  }
  return out;
}

void PatternFinder::add_reduction(std::size_t k, bool as_sender, std::map<std::int64_t, Flow>& flows) {
  const Reduction& r = s_.reductions[k];
  const std::vector<TrackSource> sources = sources_of(k, as_sender);
  for (auto& [peer, boxes] : boxes_by_peer(r, as_sender)) {
    // What only one end knows is compared where it is told.
    if (!as_sender && !is_told_)
      for (const Box& box : boxes) conformity_.check(r, *places_[k], box, peer);
    Segment segment;
    segment.reduction = static_cast<int>(k);
    if (compares_ends_) segment.digest = conformity_.digest(boxes, told_sources(k, as_sender));
    segment.pieces = pieces_.pieces_of(std::move(boxes), sources);
    for (const Piece& p : segment.pieces) segment.element_count += p.element_count();
    limit_segment(segment, r, box_of(peer));
    if (segment.element_count > 0) flows[peer].segments.push_back(std::move(segment));
  }
}

std::vector<TrackSource> PatternFinder::told_sources(std::size_t k, bool as_sender) const {
  std::vector<TrackSource> out;
  for (const int v : told_variables(s_, s_.reductions[k]))
    for (int w = 0; w < word_count(s_.variables[static_cast<std::size_t>(v)].type); ++w)
      out.push_back({.kind = TrackSource::Kind::word, .number = v, .word = w, .counted = {}});
  out.push_back({.kind = TrackSource::Kind::count, .counted = counted(k, as_sender)});
  return out;
}

std::vector<TrackSource> PatternFinder::notice_sources(std::size_t k) const {
  std::vector<TrackSource> out = told_sources(k, !s_.is_pull);
  if (tells_positions(s_))
    for (const int v : generators_of(s_))
      out.push_back({.kind = TrackSource::Kind::position, .number = v + 1, .counted = {}});
  return out;
}

std::vector<Notice> PatternFinder::notices() {
  std::map<std::int64_t, Notice> by_peer;
  for (std::size_t k = 0; k < s_.reductions.size(); ++k)
    for (auto& [peer, boxes] : boxes_by_peer(s_.reductions[k], !s_.is_pull)) {
      by_peer[peer].peer = peer;
      by_peer[peer].parts.push_back({static_cast<int>(k), pieces_.pieces_of(std::move(boxes), notice_sources(k))});
    }
  std::vector<Notice> out;
  for (auto& [peer, notice] : by_peer) out.push_back(std::move(notice));
  return out;
}

OwnHalf PatternFinder::own_half() {
  if (hangs_on_contents(s_)) return enumerated_half();
  check_deciders();
  OwnHalf out;
  out.pattern.values = values_;
  (s_.is_pull ? out.pattern.receives : out.pattern.sends) = flows(!s_.is_pull);
  out.notices = notices();
  return out;
}

OwnHalf PatternFinder::enumerated_half() {
  std::vector<std::vector<TrackSource>> own, notice;
  for (std::size_t k = 0; k < s_.reductions.size(); ++k) {
    own.push_back(sources_of(k, !s_.is_pull));
    notice.push_back(notice_sources(k));
  }
  std::vector<Enumeration::ByPeer> by_peer = Enumeration(bound_, s_).pieces(own, notice);
  std::map<std::int64_t, Flow> flows;
  std::map<std::int64_t, Notice> told;
  for (std::size_t k = 0; k < by_peer.size(); ++k)
    for (auto& [peer, pieces] : by_peer[k]) {
      simplify(pieces.notice);
      told[peer].peer = peer;
      told[peer].parts.push_back({static_cast<int>(k), {}});
      told[peer].parts.back().environments.push_back(std::move(pieces.notice));
      if (!pieces.own) continue;
      Segment segment;
      segment.reduction = static_cast<int>(k);
      segment.element_count = pieces.own->element_count();
      limit_segment(segment, s_.reductions[k], box_of(peer));
      simplify(*pieces.own);
      segment.pieces.push_back(std::move(*pieces.own));
      flows[peer].peer = peer;
      flows[peer].segments.push_back(std::move(segment));
    }
  OwnHalf out;
  out.pattern.values = values_;
  for (auto& [peer, flow] : flows) (s_.is_pull ? out.pattern.receives : out.pattern.sends).push_back(std::move(flow));
  for (auto& [peer, notice_of_peer] : told) out.notices.push_back(std::move(notice_of_peer));
  return out;
}

void PatternFinder::check_deciders() const {
  check_clauses(formula_.knowing());
  for (const Reduction& r : s_.reductions) {
    const Expr& decider = s_.is_pull ? *r.receiver : *r.sender;
    bool is_complete = true;
    const auto box = solver_.find_outside(decider, bound_.state.rank, std::int64_t{1} << 22, is_complete);
    if (!is_complete)
      throw SolverFault{
          {"KP-A010", "whether this is always a rank of the group takes too long to find out", decider.span},
          box_of(bound_.state.rank)};
    if (!box) continue;
    throw SolverFault{rank_outside_group(s_.is_pull ? "receiver" : "sender", formula_.range_of(decider, *box).lo,
                                         bound_.state.size, decider.span),
                      *box};
  }
}

std::vector<std::int64_t> PatternFinder::place_at(std::size_t k, const Box& box,
                                                  const std::vector<std::int64_t>& indices) {
  return select_bytes(*places_[k], pieces_.context_at(box, indices));
}

std::vector<EnvironmentKey> PatternFinder::keys(std::size_t k, std::int64_t sender) {
  std::map<std::vector<std::int64_t>, std::int64_t> in_order;
  each_received(k, [&](std::int64_t peer, const Box& box) {
    if (peer != sender) return;
    pieces_.spend(box, most_sorted);
    each_environment(box, [&](const std::vector<std::int64_t>& indices) {
      std::vector<std::int64_t> key;
      for (std::size_t n = 1; n < indices.size(); ++n) key.push_back(box.positions[n][indices[n]]);
      in_order[std::move(key)] = static_cast<std::int64_t>(place_at(k, box, indices).size());
      return true;
    });
  });
  std::vector<EnvironmentKey> out;
  for (auto& [key, count] : in_order) out.push_back({key, count});
  return out;
}

std::string PatternFinder::text_at(std::size_t k, std::int64_t sender, std::int64_t offset_bytes, int occurrence) {
  std::string out;
  each_received(k, [&](std::int64_t peer, const Box& box) {
    if (peer != sender || !out.empty()) return;
    each_environment(box, [&](const std::vector<std::int64_t>& indices) {
      for (const std::int64_t byte : place_at(k, box, indices)) {
        if (byte != offset_bytes || occurrence-- > 0) continue;
        const EvaluationContext context = pieces_.context_at(box, indices);
        const std::vector<ScalarValue> variables(context.variables, context.variables + s_.variables.size());
        out = environment_text(s_, variables, static_cast<int>(variables.size()));
        return false;
      }
      return true;
    });
  });
  return out;
}

Box PatternFinder::box_of(std::int64_t evaluator) const {
  Box box;
  box.positions.resize(s_.variables.size() + 1);
  box.sets.resize(s_.variables.size() + 1);
  box.sets[0] = {true, 0, 1, bound_.state.size, nullptr, {}};
  box.positions[0] = {evaluator, 1, 1};
  return box;
}

void PatternFinder::rethrow(const SolverFault& f) const {
  RankState state = bound_.state;
  std::vector<ScalarValue> variables(s_.variables.size());
  std::string environment;
  formula_.values_at(f.box, {}, state, variables);
  for (const Clause& c : s_.clauses) {
    if (f.fault.span.begin >= c.span.begin && f.fault.span.end <= c.span.end) break;  // it and what follows has no value
    if (c.kind == ClauseKind::filter) continue;
    const auto v = static_cast<std::size_t>(c.variable);
    const bool is_known = c.kind == ClauseKind::binding
                              ? formula_.is_single(*c.expression, f.box)
                              : f.box.sets[v + 1].is_known && f.box.positions[v + 1].count == 1;
    if (is_known)
      environment +=
          fmt::format("{}{} = {}", environment.empty() ? "" : ", ", s_.variables[v].name, to_text(variables[v]));
  }
  BoundPlan there = bound_;
  there.state.rank = state.rank;
  throw_fault(there, s_, f.fault, environment);
}

void throw_fault(const BoundPlan& bound, const Statement& s, const EvaluationFault& f, const std::string& environment) {
  const std::string message =
      fmt::format("{} when {}{}rank {}{}{}", f.message, environment, environment.empty() ? "" : ", ",
                  bound.my_world_rank(), f.advice.empty() ? "" : "; ", f.advice);
  if (f.code == "KP-R001")
    throw RunError(f.code, place_in(bound.model->source.document, s.text, f.span) + message,
                   underline(s.text.text, f.span));
  throw error_in(*bound.model, s, f.span, f.code, message);
}

void limit_segment(const Segment& segment, const Reduction& r, const Box& box) {
  if (segment.element_count > most_message_elements)
    throw SolverFault{
        {"KP-A011", fmt::format("one message would have {} elements, at most 2^40 are sent", segment.element_count),
         r.span},
        box};
  if (static_cast<Wide>(segment.element_count) * static_cast<std::int64_t>(r.value_type.size_bytes) >
      most_message_bytes)
    throw SolverFault{{"KP-A011",
                       fmt::format("one message would have {} elements of {} bytes, at most 64 GiB are sent",
                                   segment.element_count, r.value_type.size_bytes),
                       r.span},
                      box};
}

std::vector<int> told_variables(const Statement& s, const Reduction& r) {
  std::set<int> out;
  visit(s.is_pull ? *r.value : *r.place, [&](const Expr& e) {
    if (e.kind == ExprKind::variable) out.insert(e.id);
  });
  return {out.begin(), out.end()};
}

bool tells_positions(const Statement& s) {
  if (s.is_pull || (s.is_any_order && !s.is_fresh)) return false;
  for (std::size_t a = 0; a < s.reductions.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (s.reductions[a].place->id == s.reductions[b].place->id) return true;
  return false;
}

std::vector<int> generators_of(const Statement& s) {
  std::vector<int> out;
  for (const Clause& c : s.clauses)
    if (c.kind == ClauseKind::generator) out.push_back(c.variable);
  return out;
}

StatementPattern find_pattern(const BoundPlan& bound, const Statement& s, const Knowledge& knowledge) {
  return with_finder(bound, s, knowledge, [&](PatternFinder& finder) {
    finder.check_deciders();
    StatementPattern out;
    out.values = finder.values();
    out.sends = finder.flows(true);
    out.receives = finder.flows(false);
    return out;
  });
}

OwnHalf find_own_half(const BoundPlan& bound, const Statement& s, const Knowledge& knowledge) {
  return with_finder(bound, s, knowledge, [](PatternFinder& finder) { return finder.own_half(); });
}

[[gnu::hot]] std::uint64_t mixed(std::uint64_t h, std::uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdu;
  return h ^ (h >> 32);
}

bool may_ends_differ(const PlanModel& plan, const Statement& s, const Knowledge& knowledge) {
  if (is_told(knowledge)) return false;
  if (knowledge.knowledge == KnowledgeClass::corresponding) return true;
  bool out = false;
  for (const Reduction& r : s.reductions)
    for (const Expr* side : {r.place.get(), r.value.get()})
      visit(*side, [&](const Expr& e) {
        out = out || (e.kind == ExprKind::element && !e.is_index && has_private_count(plan, e));
      });
  return out;
}

}  // namespace kplan
