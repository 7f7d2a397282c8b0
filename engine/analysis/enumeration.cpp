// How it works: clause by clause, a block of environments is filtered, bound, or multiplied by a generator's set; what
// grows is cut into blocks again, depth first, so that order stays and memory is bounded.
#include "engine/analysis/enumeration.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/analysis/expressions.hpp"
#include "engine/analysis/pattern_finder.hpp"

namespace kplan {
namespace {

constexpr std::size_t block_rows = 1024;

void keep_rows(Block& block, const std::vector<std::int64_t>& keep) {
  for (auto* columns : {&block.words, &block.second, &block.positions})
    for (auto& column : *columns) {
      if (column.empty()) continue;
      std::size_t to = 0;
      for (std::size_t row = 0; row < block.count; ++row)
        if (keep[row] != 0) column[to++] = column[row];
      column.resize(to);
    }
  block.count = static_cast<std::size_t>(std::ranges::count_if(keep, [](std::int64_t k) { return k != 0; }));
}

}  // namespace

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

template <class F>
void Enumeration::guarded(std::size_t clause, const Block& block, const F& f) {
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

void Enumeration::expand(std::size_t clause, Block& block, const std::function<void(Block&)>& f) {
  for (; clause < s_.clauses.size(); ++clause) {
    if (block.count == 0) return;
    const Clause& c = s_.clauses[clause];
    steps_ += static_cast<std::int64_t>(block.count);
    guarded(clause, block, [&] {
      if (steps_ > largest_step_count)
        throw BlockFault{
            {"KP-P051",
             fmt::format("the where-list takes more than {} steps; narrow its sets instead of filtering them",
                         largest_step_count),
             c.span},
            0};
      if (c.kind == ClauseKind::filter) {
        columns_.evaluate_integers(*c.expression, block, keep_);
        keep_rows(block, keep_);
      } else if (c.kind == ClauseKind::binding) {
        bind(c, block);
      }
    });
    if (c.kind == ClauseKind::generator) return generate(clause, block, f);
  }
  if (block.count > 0) f(block);
}

void Enumeration::bind(const Clause& c, Block& block) {
  const auto v = static_cast<std::size_t>(c.variable);
  const Scalar type = s_.variables[v].type;
  if (is_integer(type) || type == Scalar::boolean)
    return columns_.evaluate_integers(*c.expression, block, block.words[v]);
  block.words[v].resize(block.count);
  if (word_count(type) == 2) block.second[v].resize(block.count);
  for (std::size_t row = 0; row < block.count; ++row) {
    const ScalarValue value = columns_.evaluate_at(*c.expression, block, row);
    block.words[v][row] = word_of(value, 0);
    if (word_count(type) == 2) block.second[v][row] = word_of(value, 1);
  }
}

void Enumeration::generate(std::size_t clause, const Block& block, const std::function<void(Block&)>& f) {
  const Clause& c = s_.clauses[clause];
  const auto v = static_cast<std::size_t>(c.variable);
  Block& next = blocks_[clause];
  next.clear(s_.variables.size());
  for (std::size_t row = 0; row < block.count; ++row) {
    std::optional<SetValues> set;
    guarded(clause, block, [&] {
      try {
        set.emplace(c.set, columns_.context_at(block, row), c.span);
      } catch (const EvaluationFault& fault) {
        throw BlockFault{fault, row};
      }
    });
    for (std::int64_t first = 0; first < set->count();) {
      const std::int64_t count =
          std::min<std::int64_t>(set->count() - first, static_cast<std::int64_t>(block_rows - next.count));
      for (std::size_t u = 0; u < s_.variables.size(); ++u) {
        const auto repeat = [&](const auto& from, auto& to) {
          if (!from[u].empty()) to[u].insert(to[u].end(), static_cast<std::size_t>(count), from[u][row]);
        };
        repeat(block.words, next.words);
        repeat(block.second, next.second);
        repeat(block.positions, next.positions);
      }
      for (std::int64_t k = first; k < first + count; ++k) {
        next.words[v].push_back((*set)[k]);
        next.positions[v].push_back(k);
      }
      next.count += static_cast<std::size_t>(count);
      first += count;
      if (next.count == block_rows) {
        expand(clause + 1, next, f);
        next.clear(s_.variables.size());
      }
    }
  }
  if (next.count > 0) expand(clause + 1, next, f);
}

std::vector<Enumeration::ByPeer> Enumeration::lists(const std::vector<std::vector<TrackSource>>& own,
                                                    const std::vector<std::vector<TrackSource>>& notice) {
  std::vector<ByPeer> out(s_.reductions.size());
  each_decided([&](std::size_t k, const Block& block, const std::vector<std::int64_t>& peers) {
    add_block(block, peers, own[k], notice[k], out[k]);
  });
  return out;
}

void Enumeration::each_decided(
    const std::function<void(std::size_t, const Block&, const std::vector<std::int64_t>&)>& f) {
  steps_ = 0;
  Block& all = blocks_.back();
  all.clear(s_.variables.size());
  all.count = 1;
  expand(0, all, [&](Block& block) {
    for (std::size_t k = 0; k < s_.reductions.size(); ++k) {
      const Reduction& r = s_.reductions[k];
      Block* decided = &block;
      if ((s_.is_pull ? *r.receiver : *r.sender).kind != ExprKind::rank) *(decided = &decided_) = block;
      guarded(s_.clauses.size(), *decided, [&] {
        find_peers(r, *decided, peers_);
        if (decided->count > 0) f(k, *decided, peers_);
      });
    }
  });
}

void Enumeration::check_ranks(const Expr& e, const std::vector<std::int64_t>& ranks, const char* what,
                              const Block& block) {
  for (std::size_t row = 0; row < block.count; ++row)
    if (ranks[row] < 0 || ranks[row] >= bound_.state.size)
      throw BlockFault{rank_outside_group(what, ranks[row], bound_.state.size, e.span), row};
}

void Enumeration::find_peers(const Reduction& r, Block& block, std::vector<std::int64_t>& peers) {
  const Expr &decider = s_.is_pull ? *r.receiver : *r.sender, &other = s_.is_pull ? *r.sender : *r.receiver;
  if (decider.kind != ExprKind::rank) {
    columns_.evaluate_integers(decider, block, peers);
    check_ranks(decider, peers, s_.is_pull ? "receiver" : "sender", block);
    for (std::int64_t& rank : peers) rank = rank == bound_.state.rank;
    keep_rows(block, peers);
  }
  columns_.evaluate_integers(other, block, peers);
  check_ranks(other, peers, s_.is_pull ? "sender" : "receiver", block);
}

void Enumeration::add_block(const Block& block, const std::vector<std::int64_t>& peers,
                            const std::vector<TrackSource>& own, const std::vector<TrackSource>& notice, ByPeer& out) {
  TrackColumns elements(columns_, block, own, bound_.state.layouts),
      environments(columns_, block, notice, bound_.state.layouts);
  for (std::size_t row = 0; row < block.count;) {
    const std::int64_t peer = peers[row];
    std::size_t end = row + 1;
    while (end < block.count && peers[end] == peer) ++end;
    Lists& lists = out[peer];
    lists.own.resize(own.size());
    lists.notice.resize(notice.size());
    lists.element_count += elements.append(row, end, lists.own);
    lists.environment_count += environments.append(row, end, lists.notice);
    row = end;
  }
}

}  // namespace kplan
