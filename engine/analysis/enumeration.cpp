#include "engine/analysis/enumeration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/analysis/expressions.hpp"
#include "engine/analysis/pattern_finder.hpp"

namespace kplan {

namespace {

/// What hangs on a buffer's contents by where-bound variables.
class ContentUses {
 public:
  explicit ContentUses(const Statement& s) : s_(s), is_listed_(s.variables.size()) {
    for (const Clause& c : s.clauses)
      if (c.kind == ClauseKind::generator && c.set.kind == Set::Kind::buffer)
        is_listed_[static_cast<std::size_t>(c.variable)] = true;
  }

  bool hangs(const ExprPtr& e) const {
    return contains(*with_bindings(e, s_), [&](const Expr& x) {
      if (x.kind == ExprKind::variable) return bool{is_listed_[static_cast<std::size_t>(x.id)]};
      return x.kind == ExprKind::element && std::ranges::any_of(x.subscripts, [](const Subscript& sub) {
               return sub.lo && contains(*sub.lo, [](const Expr& y) { return y.kind == ExprKind::variable; });
             });
    });
  }

  /// Those by which it hangs.
  void add_variables(const ExprPtr& e, std::set<int>& to) const {
    const auto add = [&](const Expr& y) {
      if (y.kind == ExprKind::variable) to.insert(y.id);
    };
    visit(*with_bindings(e, s_), [&](const Expr& x) {
      if (x.kind == ExprKind::variable && is_listed_[static_cast<std::size_t>(x.id)]) to.insert(x.id);
      if (x.kind != ExprKind::element) return;
      for (const Subscript& sub : x.subscripts)
        if (sub.lo) visit(*sub.lo, add);
    });
  }

 private:
  const Statement& s_;
  std::vector<bool> is_listed_;
};

}  // namespace

bool hangs_on_contents(const Statement& s) {
  const ContentUses contents(s);
  const auto hangs = [&](const ExprPtr& e) { return contents.hangs(e); };
  return std::ranges::any_of(s.reductions, [&](const Reduction& r) { return hangs(r.sender) || hangs(r.receiver); }) ||
         std::ranges::any_of(s.clauses,
                             [&](const Clause& c) { return c.kind == ClauseKind::filter && hangs(c.expression); });
}

bool do_slices_hang_on_contents(const Statement& s, int turns) {
  const ContentUses contents(s);
  const auto hangs = [&](const ExprPtr& e) { return e && contents.hangs(e); };
  const auto has_one = [&](const ExprPtr& side) {
    return contains(*with_bindings(side, s), [&](const Expr& x) {
      return x.kind == ExprKind::element && std::ranges::any_of(x.subscripts, [&](const Subscript& sub) {
               return sub.is_slice && (hangs(sub.lo) || hangs(sub.hi));
             });
    });
  };
  const auto is_one = [&](const Clause& c) {
    return c.kind == ClauseKind::generator && c.variable == turns &&
           (hangs(with_bindings(c.set.first, s)) || hangs(with_bindings(c.set.last, s)));
  };
  return std::ranges::any_of(s.reductions, [&](const Reduction& r) { return has_one(r.place) || has_one(r.value); }) ||
         std::ranges::any_of(s.clauses, is_one);
}

bool do_contents_choose_elements(const Statement& s, int turns) {
  const ContentUses contents(s);
  std::set<int> choosing;
  const auto note = [&](const ExprPtr& side) {
    visit(*with_bindings(side, s), [&](const Expr& x) {
      if (x.kind != ExprKind::element) return;
      for (const Subscript& sub : x.subscripts)
        if (!sub.is_slice) contents.add_variables(sub.lo, choosing);
    });
  };
  for (const Reduction& r : s.reductions) note(r.place), note(r.value);
  return !choosing.empty() && std::ranges::all_of(s.clauses, [&](const Clause& c) {
    return c.kind != ClauseKind::generator || c.set.kind == Set::Kind::ranks || c.variable == turns ||
           choosing.contains(c.variable);
  });
}

Enumeration::Enumeration(const BoundPlan& bound, const Statement& s)
    : bound_(bound), s_(s), walk_(s, bound.state), decided_(s.variables.size()) {
  using Form = ColumnProgram::Form;
  for (const Reduction& r : s.reductions)
    ends_.push_back({columns().program(s.is_pull ? *r.receiver : *r.sender, Form::integers),
                     columns().program(s.is_pull ? *r.sender : *r.receiver, Form::integers)});
}

std::vector<Enumeration::ByPeer> Enumeration::pieces(const std::vector<std::vector<TrackSource>>& own,
                                                     const std::vector<std::vector<TrackSource>>& notice) {
  std::vector<Growing> growing;
  for (std::size_t k = 0; k < s_.reductions.size(); ++k) {
    growing.push_back({TrackColumns(columns(), own[k], bound_), TrackColumns(columns(), notice[k], bound_)});
    growing[k].own.begin();
    growing[k].notice.begin();
    for (const TrackSource& source : notice[k])
      if (source.kind == TrackSource::Kind::position) walk_.want_positions();
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
  try {
    walk_.each([&](Block& block) {
      for (std::size_t k = 0; k < ends_.size(); ++k) {
        Block* decided = &block;
        if (ends_[k].decider.expression().kind != ExprKind::rank) walk_.copy(block, *(decided = &decided_));
        try {
          find_peers(k, *decided);
          if (decided->count > 0) f(k, *decided, peers_.data());
        } catch (const BlockFault& fault) {
          walk_.fail(fault, *decided);
        }
      }
    });
  } catch (const WalkFault& fault) {
    throw_fault(bound_, s_, fault.fault, environment_text(s_, fault.variables, fault.bound_count));
  }
}

void Enumeration::check_ranks(const ColumnProgram& ranks, const Column& values, bool are_senders,
                              const Block& block) const {
  const std::int64_t size = bound_.state.size;
  const auto is_outside = [&](std::int64_t rank) { return rank < 0 || rank >= size; };
  std::uint64_t wrong = 0;  // its highest bit is set where a rank is negative, or the last one less the rank is
  for (std::size_t row = 0; row < block.count; ++row) {
    const auto rank = static_cast<std::uint64_t>(values[row]);
    wrong |= rank | (static_cast<std::uint64_t>(size) - 1 - rank);
  }
  if (static_cast<std::int64_t>(wrong) >= 0) return;
  const auto first = std::find_if(values.begin(), values.end(), is_outside);
  throw BlockFault{
      rank_outside_group(are_senders ? "sender" : "receiver", *first, bound_.state.size, ranks.expression().span),
      static_cast<std::size_t>(first - values.begin())};
}

void Enumeration::find_peers(std::size_t k, Block& block) {
  Ends& ends = ends_[k];
  if (ends.decider.expression().kind != ExprKind::rank) {
    columns().run(ends.decider, block, room_in(keep_, block.count));
    check_ranks(ends.decider, keep_, !s_.is_pull, block);
    for (std::size_t row = 0; row < block.count; ++row) keep_[row] = keep_[row] == bound_.state.rank;
    walk_.keep(keep_, block);
  }
  columns().run(ends.other, block, room_in(peers_, block.count));
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
