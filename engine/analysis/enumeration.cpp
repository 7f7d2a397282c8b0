// How it works: clause by clause, a block of environments is filtered, bound, or multiplied by a generator's set; what
// grows is cut into blocks again, depth first, so that order stays and memory is bounded.
#include "engine/analysis/enumeration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "engine/analysis/expressions.hpp"
#include "engine/analysis/pattern_finder.hpp"

namespace kplan {

bool hangs_on_contents(const Statement& s) {
  std::vector<bool> is_listed(s.variables.size());
  for (const Clause& c : s.clauses)
    if (c.kind == ClauseKind::generator && c.set.kind == Set::Kind::buffer)
      is_listed[static_cast<std::size_t>(c.variable)] = true;
  const auto hangs = [&](const ExprPtr& e) {
    return contains(*with_bindings(e, s), [&](const Expr& x) {
      if (x.kind == ExprKind::variable) return bool{is_listed[static_cast<std::size_t>(x.id)]};
      return x.kind == ExprKind::element && std::ranges::any_of(x.subscripts, [](const Subscript& sub) {
               return sub.lo && contains(*sub.lo, [](const Expr& y) { return y.kind == ExprKind::variable; });
             });
    });
  };
  return std::ranges::any_of(s.reductions, [&](const Reduction& r) { return hangs(r.sender) || hangs(r.receiver); }) ||
         std::ranges::any_of(s.clauses,
                             [&](const Clause& c) { return c.kind == ClauseKind::filter && hangs(c.expression); });
}

Enumeration::Enumeration(const BoundPlan& bound, const Statement& s)
    : bound_(bound), s_(s), columns_(s, bound.state), start_(s.variables.size()), decided_(s.variables.size()) {
  using Form = ColumnProgram::Form;
  stages_.reserve(s.clauses.size());
  for (const Clause& c : s.clauses) {
    Stage& stage = stages_.emplace_back(Stage{c, all_, {}, {}, Block(s.variables.size())});
    const auto add = [&](const ExprPtr& e) { stage.programs.push_back(columns_.program(*e, Form::integers)); };
    if (c.expression) add(c.expression);
    if (c.kind == ClauseKind::generator && c.set.kind == Set::Kind::range)
      for (const ExprPtr& e : {c.set.first, c.set.last, c.set.step})
        if (e) add(e);
    stage.limits.resize(stage.programs.size());
    if (c.kind == ClauseKind::filter) continue;
    const auto v = static_cast<std::size_t>(c.variable);
    all_.push_back({&Block::words, v});
    if (word_count(s.variables[v].type) == 2) all_.push_back({&Block::second, v});
    if (c.kind == ClauseKind::generator) all_.push_back({&Block::positions, v});
  }
  for (const Reduction& r : s.reductions)
    ends_.push_back({columns_.program(s.is_pull ? *r.receiver : *r.sender, Form::integers),
                     columns_.program(s.is_pull ? *r.sender : *r.receiver, Form::integers)});
}

template <class F>
void Enumeration::guarded(const std::size_t& clause, const Block& block, const F& f) {
  try {
    f();
  } catch (const BlockFault& fault) {
    std::string text;
    const EvaluationContext context = columns_.context_at(block, fault.row);
    for (std::size_t c = 0; c < std::min(clause, s_.clauses.size()); ++c) {
      if (s_.clauses[c].kind == ClauseKind::filter) continue;
      const auto v = static_cast<std::size_t>(s_.clauses[c].variable);
      text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", s_.variables[v].name, to_text(context.variables[v]));
    }
    throw_fault(bound_, s_, fault.fault, text);
  }
}

void Enumeration::keep_rows(const std::vector<Bound>& bound, const Column& keep, Block& block) {
  const auto end = keep.begin() + static_cast<std::ptrdiff_t>(block.count);
  const auto kept = static_cast<std::size_t>(std::count_if(keep.begin(), end, [](auto k) { return k != 0; }));
  if (kept < block.count && kept > 0)
    for (const Bound& b : bound) {
      Column& column = (block.*b.columns)[b.variable];
      if (column.empty()) continue;  // positions that nobody wants
      std::size_t to = 0;
      for (std::size_t row = 0; row < block.count; ++row)
        if (keep[row] != 0) column[to++] = column[row];
    }
  block.count = kept;
}

void Enumeration::expand(std::size_t clause, Block& block, const std::function<void(Block&)>& f) {
  guarded(clause, block, [&] {
    for (; clause < stages_.size() && block.count > 0; ++clause) {
      Stage& stage = stages_[clause];
      steps_ += static_cast<std::int64_t>(block.count);
      if (steps_ > largest_step_count)
        throw BlockFault{
            {"KP-P051",
             fmt::format("the where-list takes more than {} steps; narrow its sets instead of filtering them",
                         largest_step_count),
             stage.clause.span},
            0};
      if (stage.clause.kind == ClauseKind::generator) return generate(clause, block, f);
      if (stage.clause.kind == ClauseKind::binding) {
        bind(stage, block);
      } else {
        columns_.run(stage.programs[0], block, room_in(keep_, block.count));
        keep_rows(stage.bound, keep_, block);
      }
    }
    if (block.count > 0) f(block);
  });
}

void Enumeration::bind(Stage& stage, Block& block) {
  const auto v = static_cast<std::size_t>(stage.clause.variable);
  const Scalar type = s_.variables[v].type;
  std::int64_t* const words = room_in(block.words[v], block.count);
  if (is_integer(type) || type == Scalar::boolean) return columns_.run(stage.programs[0], block, words);
  const bool has_two = word_count(type) == 2;
  std::int64_t* const second = has_two ? room_in(block.second[v], block.count) : nullptr;
  for (std::size_t row = 0; row < block.count; ++row) {
    const ScalarValue value = columns_.evaluate_at(*stage.clause.expression, block, row);
    words[row] = word_of(value, 0);
    if (has_two) second[row] = word_of(value, 1);
  }
}

SetValues Enumeration::set_at(Stage& stage, const Block& block, std::size_t row) {
  const Clause& c = stage.clause;
  try {
    if (c.set.kind == Set::Kind::range)
      return {c.set, stage.limits[0][row], stage.limits[1][row], c.set.step ? stage.limits[2][row] : 1, c.span};
    if (c.set.kind == Set::Kind::ranks) return {c.set, columns_.context(), c.span};
    return {c.set, columns_.context_at(block, row), c.span};
  } catch (const EvaluationFault& fault) {
    throw BlockFault{fault, row};
  }
}

/// What is bound before a generator is the same for all its values.
void Enumeration::repeat(const Stage& stage, const Block& block, std::size_t row, std::size_t count,
                         Block& next) const {
  for (const Bound& b : stage.bound)
    if (b.columns != &Block::positions || wants_positions_)
      std::fill_n(room_in((next.*b.columns)[b.variable], next.count + count) + next.count, count,
                  (block.*b.columns)[b.variable][row]);
}

void Enumeration::generate(std::size_t clause, const Block& block, const std::function<void(Block&)>& f) {
  Stage& stage = stages_[clause];
  const auto v = static_cast<std::size_t>(stage.clause.variable);
  for (std::size_t k = 0; k < stage.programs.size(); ++k)
    columns_.run(stage.programs[k], block, room_in(stage.limits[k], block.count));
  Block& next = stage.made;
  next.count = 0;
  for (std::size_t row = 0; row < block.count; ++row) {
    const SetValues set = set_at(stage, block, row);
    for (std::int64_t first = 0; first < set.count();) {
      const std::int64_t room = static_cast<std::int64_t>(Block::most_rows - next.count),
                         count = std::min(set.count() - first, room);
      const auto rows = static_cast<std::size_t>(count);
      repeat(stage, block, row, rows, next);
      set.write(first, count, room_in(next.words[v], next.count + rows) + next.count);
      if (wants_positions_) {
        std::int64_t* const positions = room_in(next.positions[v], next.count + rows) + next.count;
        std::iota(positions, positions + rows, first);
      }
      next.count += rows;
      first += count;
      if (next.count == Block::most_rows) {
        expand(clause + 1, next, f);
        next.count = 0;
      }
    }
  }
  if (next.count > 0) expand(clause + 1, next, f);
}

std::vector<Enumeration::ByPeer> Enumeration::pieces(const std::vector<std::vector<TrackSource>>& own,
                                                     const std::vector<std::vector<TrackSource>>& notice) {
  std::vector<Growing> growing;
  for (std::size_t k = 0; k < s_.reductions.size(); ++k) {
    growing.push_back({TrackColumns(columns_, own[k], bound_), TrackColumns(columns_, notice[k], bound_)});
    growing[k].own.begin();
    growing[k].notice.begin();
    for (const TrackSource& source : notice[k])
      wants_positions_ = wants_positions_ || source.kind == TrackSource::Kind::position;
  }
  each_decided(
      [&](std::size_t k, const Block& block, const std::int64_t* peers) { add_block(block, peers, growing[k]); });
  std::vector<ByPeer> out(growing.size());
  for (std::size_t k = 0; k < growing.size(); ++k)
    for (auto& [peer, grown] : growing[k].by_peer) {
      Pieces& pieces = out[k][peer];
      if (grown.own.list_length > 0) pieces.own = growing[k].own.piece(std::move(grown.own));
      pieces.notice = growing[k].notice.piece(std::move(grown.notice));
    }
  return out;
}

void Enumeration::each_decided(const std::function<void(std::size_t, const Block&, const std::int64_t*)>& f) {
  steps_ = 0;
  start_.count = 1;
  expand(0, start_, [&](Block& block) {
    for (std::size_t k = 0; k < ends_.size(); ++k) {
      Block* decided = &block;
      if (ends_[k].decider.expression().kind != ExprKind::rank) {
        decided = &decided_;
        decided->count = block.count;
        for (const Bound& b : all_) {
          const Column& from = (block.*b.columns)[b.variable];
          if (from.empty()) continue;
          std::copy_n(from.begin(), block.count, room_in((decided->*b.columns)[b.variable], block.count));
        }
      }
      const std::size_t after_all = stages_.size();
      guarded(after_all, *decided, [&] {
        find_peers(k, *decided);
        if (decided->count > 0) f(k, *decided, peers_.data());
      });
    }
  });
}

void Enumeration::check_ranks(const ColumnProgram& ranks, const Column& values, bool are_senders,
                              const Block& block) const {
  for (std::size_t row = 0; row < block.count; ++row)
    if (values[row] < 0 || values[row] >= bound_.state.size)
      throw BlockFault{rank_outside_group(are_senders ? "sender" : "receiver", values[row], bound_.state.size,
                                          ranks.expression().span),
                       row};
}

void Enumeration::find_peers(std::size_t k, Block& block) {
  Ends& ends = ends_[k];
  if (ends.decider.expression().kind != ExprKind::rank) {
    columns_.run(ends.decider, block, room_in(keep_, block.count));
    check_ranks(ends.decider, keep_, !s_.is_pull, block);
    for (std::size_t row = 0; row < block.count; ++row) keep_[row] = keep_[row] == bound_.state.rank;
    keep_rows(all_, keep_, block);
  }
  columns_.run(ends.other, block, room_in(peers_, block.count));
  check_ranks(ends.other, peers_, s_.is_pull, block);
}

void Enumeration::add_block(const Block& block, const std::int64_t* peers, Growing& growing) {
  growing.own.take(block);
  growing.notice.take(block);
  for (std::size_t row = 0; row < block.count;) {
    const std::int64_t peer = peers[row];
    std::size_t end = row + 1;
    while (end < block.count && peers[end] == peer) ++end;
    Growing::OfPeer& grown = growing.by_peer[peer];
    growing.own.append(row, end, grown.own);
    growing.notice.append(row, end, grown.notice);
    row = end;
  }
}

}  // namespace kplan
