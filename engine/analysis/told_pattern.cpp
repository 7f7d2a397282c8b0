// How it works: the end of a message that cannot replay the where-list gets its environments as pieces. Its own
// references (the place; for a pull the value) are put in closed form over the told variables, as if each were a free
// number between its smallest and largest value; told tracks, scaled, are then tracks through this rank's memory.
// Where that fails, environments are evaluated in columns, and where that fails, too, one by one.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "engine/analysis/affine_reference.hpp"
#include "engine/analysis/expressions.hpp"
#include "engine/analysis/pattern_finder.hpp"
#include "engine/analysis/track_columns.hpp"

namespace kplan {
namespace {

/// Where the words of told variables and the other tracks stand in a notice's pieces.
struct NoticeLayout {
  struct Word {
    int variable, word;
  };
  std::vector<Word> words;
  std::size_t count_track = 0, first_position = 0;

  NoticeLayout(const Statement& s, const Reduction& r) {
    for (const int v : told_variables(s, r))
      for (int w = 0; w < word_count(s.variables[static_cast<std::size_t>(v)].type); ++w) words.push_back({v, w});
    count_track = words.size();
    first_position = count_track + 1;
  }
};

/// A statement whose where-bound variables are all free numbers.
Statement with_free_variables(const Statement& s) {
  Statement out = s;
  out.clauses.clear();
  for (std::size_t v = 0; v < s.variables.size(); ++v) {
    Clause c;
    c.kind = ClauseKind::generator;
    c.variable = static_cast<int>(v);
    out.clauses.push_back(std::move(c));
  }
  return out;
}

/// track += scale * (words + shift)
void add_scaled(Track& track, const Track& words, std::int64_t scale, std::int64_t shift, std::int64_t list_length) {
  if (words.is_listed() || track.is_listed()) {
    Words sums(static_cast<std::size_t>(list_length));
    for (std::int64_t o = 0; o < list_length; ++o)
      sums[static_cast<std::size_t>(o)] = track.base(o) + scale * (words.base(o) + shift);
    track.bases = std::move(sums);
    track.step = 0;
  } else {
    track.bases[0] += scale * (words.bases[0] + shift);
    track.step += scale * words.step;
  }
  for (std::size_t d = 0; d < words.strides.size(); ++d) track.strides[d] += scale * words.strides[d];
}

class ToldHalf {
 public:
  ToldHalf(const BoundPlan& bound, const Statement& s)
      : bound_(bound),
        s_(s),
        free_(with_free_variables(s)),
        formula_(Knowing{bound.model.get(), &free_, bound.state.size, &bound.state}),
        variables_(s.variables.size()) {
    for (const Reduction& r : s_.reductions) references_.push_back(references_of(r));
  }

  /// What this rank evaluates: for a pull the value and what stands in it, else the place.
  struct References {
    ValueForm value;
    ExprPtr place;
    std::vector<const Expr*> elements;
    std::vector<NumberUse> numbers;
  };
  const References& references(std::size_t k) const { return references_[k]; }

  Flow flow(const Notice& notice) {
    Flow out;
    out.peer = notice.peer;
    for (const Notice::Part& part : notice.parts) {
      const auto k = static_cast<std::size_t>(part.reduction);
      Segment segment;
      segment.reduction = part.reduction;
      for (const Piece& piece : part.environments)
        if (!add_closed(k, piece, segment.pieces) && !add_columns(k, piece, segment.pieces))
          add_listed(k, piece, notice.peer, segment.pieces);
      for (Piece& p : segment.pieces) simplify(p);
      for (const Piece& p : segment.pieces) segment.element_count += p.element_count();
      try {
        limit_segment(segment, s_.reductions[k], {});
      } catch (const SolverFault& f) {
        throw_fault(bound_, s_, f.fault, "");
      }
      if (segment.element_count > 0) out.segments.push_back(std::move(segment));
    }
    return out;
  }

  /// The environment as far as it is known here.
  std::string text(std::size_t k, const std::vector<std::int64_t>& words) {
    set_variables(k, words);
    std::string out;
    for (const int v : told_variables(s_, s_.reductions[k])) {
      const auto n = static_cast<std::size_t>(v);
      out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", s_.variables[n].name, to_text(variables_[n]));
    }
    return out;
  }

  /// The elements that the references name in one environment, in bytes, checked against the count that was told.
  std::vector<std::vector<std::int64_t>> select_at(std::size_t k, const std::vector<std::int64_t>& words) {
    set_variables(k, words);
    const EvaluationContext context{.state = &bound_.state, .variables = variables_.data()};
    const Reduction& r = s_.reductions[k];
    std::vector<std::vector<std::int64_t>> out;
    std::size_t count = 1;
    for (const Expr* e : references_[k].elements) {
      out.push_back(select_bytes(*e, context));
      count = common_count(count, out.back().size(), e->span);
    }
    const std::int64_t told = words[NoticeLayout(s_, r).count_track], mine = static_cast<std::int64_t>(count);
    conform(s_.is_pull ? mine : told, s_.is_pull ? told : mine, r.span);
    for (auto& list : out)
      if (list.size() == 1) list.assign(count, list[0]);
    return out;
  }

 private:
  References references_of(const Reduction& r) const {
    References out;
    if (!s_.is_pull) {
      out.place = with_rank(r.place, bound_.state.rank);
      out.elements = {out.place.get()};
      return out;
    }
    out.value.value = with_rank(r.value, bound_.state.rank);
    out.elements = out.value.elements = elements_read(*out.value.value);
    std::set<int> variables;
    const std::function<void(const Expr&)> collect = [&](const Expr& e) {
      if (e.kind == ExprKind::element) return;
      if (e.kind == ExprKind::variable) variables.insert(e.id);
      for (const auto& o : e.operands) collect(*o);
    };
    collect(*out.value.value);
    for (const int v : variables)
      for (int w = 0; w < word_count(s_.variables[static_cast<std::size_t>(v)].type); ++w)
        out.numbers.push_back({v + 1, w});
    out.value.numbers = out.numbers;
    return out;
  }

  void set_variables(std::size_t k, const std::vector<std::int64_t>& words) {
    const NoticeLayout layout(s_, s_.reductions[k]);
    for (std::size_t w = 0; w < layout.words.size(); ++w) {
      const auto v = static_cast<std::size_t>(layout.words[w].variable);
      if (layout.words[w].word == 0) variables_[v] = value_of_words(s_.variables[v].type, words[w], 0);
      else variables_[v].bits[1] = static_cast<std::uint64_t>(words[w]);
    }
  }

  std::size_t track_of(const NoticeLayout& layout, const NumberUse& n) const {
    for (std::size_t w = 0; w < layout.words.size(); ++w)
      if (layout.words[w].variable == n.number - 1 && layout.words[w].word == n.word) return w;
    throw InternalError("KP-I012", "a notice lacks a variable");
  }

  /// A box in which every told variable goes from its smallest to its largest value in the piece; nothing where that
  /// is not a number to calculate with.
  std::optional<Box> hull(const NoticeLayout& layout, const Piece& piece) const {
    Box box;
    box.positions.resize(s_.variables.size() + 1);
    box.sets.assign(s_.variables.size() + 1, every_value);
    for (std::size_t w = 0; w < layout.words.size(); ++w) {
      const auto v = static_cast<std::size_t>(layout.words[w].variable);
      if (!is_integer(s_.variables[v].type)) return std::nullopt;
      const Reach reach = reach_of(piece, piece.tracks[w]);
      constexpr std::int64_t most = std::int64_t{1} << 60;
      if (reach.lowest < -most || reach.highest > most) return std::nullopt;
      box.positions[v + 1] = {reach.lowest, 1, reach.highest - reach.lowest + 1};
    }
    return box;
  }

  bool add_closed(std::size_t k, const Piece& piece, std::vector<Piece>& out) const {
    const NoticeLayout layout(s_, s_.reductions[k]);
    const auto box = hull(layout, piece);
    if (!box) return false;
    std::vector<AffineReference> references;
    try {
      for (const Expr* e : references_[k].elements) {
        auto reference = affine_element(formula_, bound_.state.layouts[static_cast<std::size_t>(e->id)], *e, *box);
        if (!reference) return false;
        references.push_back(std::move(*reference));
      }
    } catch (const SolverFault&) {
      return false;  // perhaps in an environment that is none
    } catch (const EvaluationFault&) {
      return false;
    }
    const auto slices = refine_slices(references);
    if (!slices) return false;
    std::int64_t count = 1;
    for (const std::int64_t c : *slices) count *= c;
    const Track& told = piece.tracks[layout.count_track];
    const auto is_other = [&](std::int64_t b) { return b != count; };
    if (told.step != 0 || std::ranges::any_of(told.strides, [](std::int64_t s) { return s != 0; }) ||
        std::ranges::any_of(told.bases, is_other))
      return false;
    Piece next;
    next.list_length = piece.list_length;
    next.counts = piece.counts;
    next.counts.insert(next.counts.end(), slices->begin(), slices->end());
    for (const AffineReference& reference : references) {
      Track track{{reference.base}, std::vector<std::int64_t>(piece.counts.size(), 0)};
      for (std::size_t w = 0; w < layout.words.size(); ++w) {
        const auto n = static_cast<std::size_t>(layout.words[w].variable) + 1;
        const std::int64_t scale = reference.strides[n];
        if (scale != 0) add_scaled(track, piece.tracks[w], scale, -box->positions[n].first, piece.list_length);
      }
      for (const SliceDimension& d : reference.slices) track.strides.push_back(d.stride);
      next.tracks.push_back(std::move(track));
    }
    for (const NumberUse& number : references_[k].numbers) {
      Track track = piece.tracks[track_of(layout, number)];
      track.strides.resize(next.counts.size(), 0);
      next.tracks.push_back(std::move(track));
    }
    append(out, std::move(next));
    return true;
  }

  /// The references of a reduction over blocks of told environments.
  struct Columns {
    std::vector<TrackSource> sources;
    ColumnEvaluator evaluator;
    TrackColumns tracks;

    Columns(const BoundPlan& bound, const Statement& s, std::vector<TrackSource> what)
        : sources(std::move(what)), evaluator(s, bound.state), tracks(evaluator, sources, bound) {}
    Columns(const Columns&) = delete;
  };

  /// The tracks of a reduction's references, and then how many elements they name.
  Columns& columns(std::size_t k) {
    if (const auto found = columns_.find(k); found != columns_.end()) return found->second;
    std::vector<TrackSource> sources;
    for (const Expr* e : references_[k].elements) sources.push_back({.element = e, .counted = {}});
    for (const NumberUse& n : references_[k].numbers)
      sources.push_back({.kind = TrackSource::Kind::word, .number = n.number - 1, .word = n.word, .counted = {}});
    sources.push_back({.kind = TrackSource::Kind::count, .counted = references_[k].elements});
    return columns_.try_emplace(k, bound_, s_, std::move(sources)).first->second;
  }

  /// False, and nothing is added, where that cannot be done in columns, is not worth it, or something is wrong.
  bool add_columns(std::size_t k, const Piece& piece, std::vector<Piece>& out) {
    constexpr std::int64_t fewest = 32;
    if (piece.element_count() < fewest) return false;
    TrackColumns& tracks = columns(k).tracks;
    if (!tracks.begin()) return false;
    const NoticeLayout layout(s_, s_.reductions[k]);
    Block block(s_.variables.size());
    Column counts(Block::most_rows);
    std::vector<Column*> words;
    for (const NoticeLayout::Word& w : layout.words) {
      const auto v = static_cast<std::size_t>(w.variable);
      words.push_back(w.word == 0 ? &block.words[v] : &block.second[v]);
      words.back()->resize(Block::most_rows);
    }
    GrowingPiece grown;
    const auto take = [&] {
      tracks.take(block);
      const bool are_told = std::equal(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(block.count),
                                       tracks.column(columns(k).sources.size() - 1).begin());
      tracks.append(0, block.count, grown);
      block.count = 0;
      return are_told && grown.list_length <= most_listed;
    };
    bool is_well = true;
    try {
      each_entry(piece, [&](const std::vector<std::int64_t>& told) {
        for (std::size_t w = 0; w < words.size(); ++w) (*words[w])[block.count] = told[w];
        counts[block.count] = told[layout.count_track];
        if (++block.count == Block::most_rows) is_well = take();
        return is_well;
      });
      if (is_well && block.count > 0) is_well = take();
    } catch (const BlockFault&) {
      return false;
    }
    if (!is_well) return false;
    if (grown.list_length == 0) return true;
    Piece next = tracks.piece(std::move(grown));
    next.tracks.pop_back();
    append(out, std::move(next));
    return true;
  }

  void add_listed(std::size_t k, const Piece& piece, std::int64_t peer, std::vector<Piece>& out) {
    const NoticeLayout layout(s_, s_.reductions[k]);
    each_entry(piece, [&](const std::vector<std::int64_t>& words) {
      std::vector<std::vector<std::int64_t>> bases;
      try {
        bases = select_at(k, words);
      } catch (const EvaluationFault& f) {
        const std::string environment = text(k, words);
        throw_fault(bound_, s_, f,
                    fmt::format("{}{}told by rank {}", environment, environment.empty() ? "" : ", ",
                                bound_.world_rank_of(peer)));
      }
      const std::size_t count = bases.empty() ? 1 : bases[0].size();
      for (const NumberUse& number : references_[k].numbers) bases.emplace_back(count, words[track_of(layout, number)]);
      append_listed(out, bases, count);
      return true;
    });
  }

  const BoundPlan& bound_;
  const Statement& s_;
  Statement free_;
  Formula formula_;
  std::vector<ScalarValue> variables_;
  std::vector<References> references_;
  std::map<std::size_t, Columns> columns_;  ///< by reduction
};

}  // namespace

void add_told_half(const BoundPlan& bound, const Statement& s, const std::vector<Notice>& told,
                   StatementPattern& pattern) {
  ToldHalf half(bound, s);
  auto& flows = s.is_pull ? pattern.sends : pattern.receives;
  for (const Notice& notice : told) {
    Flow flow = half.flow(notice);
    if (!flow.segments.empty()) flows.push_back(std::move(flow));
  }
  if (!s.is_pull) return;
  for (std::size_t k = 0; k < s.reductions.size(); ++k) pattern.values[k] = half.references(k).value;
}

std::vector<EnvironmentKey> ReceivedEnvironments::keys(std::int64_t sender, int reduction) const {
  const auto k = static_cast<std::size_t>(reduction);
  if (!told_)
    return with_finder(bound_, s_, infer_knowledge(*bound_.model, s_),
                       [&](PatternFinder& finder) { return finder.keys(k, sender); });
  const NoticeLayout layout(s_, s_.reductions[k]);
  std::vector<EnvironmentKey> out;
  for (const Notice& notice : *told_)
    for (const Notice::Part& part : notice.parts) {
      if (notice.peer != sender || part.reduction != reduction) continue;
      for (const Piece& piece : part.environments)
        each_entry(piece, [&](const std::vector<std::int64_t>& words) {
          out.push_back({{words.begin() + static_cast<std::ptrdiff_t>(layout.first_position), words.end()},
                         words[layout.count_track]});
          return true;
        });
    }
  return out;
}

std::string ReceivedEnvironments::text_at(std::int64_t sender, int reduction, std::int64_t offset_bytes,
                                          int occurrence) const {
  const auto k = static_cast<std::size_t>(reduction);
  try {
    if (!told_) {
      PatternFinder finder(bound_, s_, infer_knowledge(*bound_.model, s_));
      return finder.text_at(k, sender, offset_bytes, occurrence);
    }
    ToldHalf half(bound_, s_);
    std::string out;
    bool is_found = false;
    for (const Notice& notice : *told_)
      for (const Notice::Part& part : notice.parts) {
        if (notice.peer != sender || part.reduction != reduction) continue;
        for (const Piece& piece : part.environments)
          each_entry(piece, [&](const std::vector<std::int64_t>& words) {
            const auto selected = half.select_at(k, words);
            for (const std::int64_t byte : selected[0]) {
              if (byte != offset_bytes || is_found || occurrence-- > 0) continue;
              is_found = true;
              out = half.text(k, words);
            }
            return !is_found;
          });
      }
    return out;
  } catch (const SolverFault&) {
    return "";  // the message does without the environment
  } catch (const EvaluationFault&) {
    return "";
  }
}

}  // namespace kplan
