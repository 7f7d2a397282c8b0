// How it works: parts that pair up, and differ at most in how their nests are cut, are cut alike. Otherwise the
// elements of a reduction are listed at both ends, brought together by where they lie in the message, and compressed
// again.
#include "engine/lower/joined_ends.hpp"

#include <algorithm>
#include <span>

#include "engine/analysis/affine_reference.hpp"
#include "engine/lower/loop_order.hpp"

namespace kplan {
namespace {

constexpr std::int64_t most_listed_elements = std::int64_t{1} << 22;

/// Gives both pieces the same nest, where their elements fall into the same dimensions; else false, and they are
/// unchanged.
bool match_nests(Piece& a, Piece& b) {
  if (a.list_length != b.list_length || a.block_elements() != b.block_elements()) return false;
  if (a.counts == b.counts) return true;
  std::vector<AffineReference> nests;  // by track
  for (const Piece* p : {&a, &b})
    for (const Track& track : p->tracks) {
      nests.emplace_back();
      for (std::size_t d = 0; d < p->counts.size(); ++d)
        nests.back().slices.push_back({p->counts[d], track.strides[d]});
    }
  const auto counts = refine_slices(nests);
  if (!counts || counts->size() > most_piece_dimensions || a.block_elements() == 0) return false;
  auto nest = nests.begin();
  for (Piece* p : {&a, &b}) {
    p->counts = *counts;
    for (Track& track : p->tracks) {
      track.strides.clear();
      for (const SliceDimension& d : nest->slices) track.strides.push_back(d.stride);
      ++nest;
    }
  }
  return true;
}

bool match_pairwise(std::vector<MessagePart>& from, std::vector<MessagePart>& to) {
  if (from.size() != to.size()) return false;
  for (std::size_t k = 0; k < from.size(); ++k) {
    Piece &x = from[k].piece, &y = to[k].piece;
    if (from[k].reduction != to[k].reduction || !match_nests(x, y) || x.tracks.back() != y.tracks.back()) return false;
  }
  return true;
}

/// The positions of every element on a track.
void list_track(const Piece& piece, const Track& track, Words& positions) {
  walk(piece, track, [&](std::int64_t position) {
    positions.push_back(position);
    return true;
  });
}

/// The parts of one reduction as one, or, where some assign and others do not (`fresh`), one for each of these after
/// the other; in the order of `to`, from lists of its elements.
std::optional<JoinedEnds> listed(std::span<const MessagePart> from, std::span<const MessagePart> to,
                                 std::int64_t element_bytes) {
  std::int64_t sent = 0, received = 0;
  for (const MessagePart& part : from) sent += part.piece.element_count();
  for (const MessagePart& part : to) received += part.piece.element_count();
  if (sent != received || sent == 0 || sent > most_listed_elements) return std::nullopt;
  const std::size_t tracks = from[0].piece.tracks.size();  // the message among them
  std::vector<Words> sources(tracks);
  for (const MessagePart& part : from)
    for (std::size_t k = 0; k < tracks; ++k) list_track(part.piece, part.piece.tracks[k], sources[k]);
  const std::int64_t first = sources.back()[0];
  for (std::int64_t n = 0; n < sent; ++n)
    if (sources.back()[static_cast<std::size_t>(n)] != first + n * element_bytes) return std::nullopt;

  JoinedEnds out;
  while (!to.empty()) {
    const auto other = std::ranges::find(to, !to[0].is_assign, &MessagePart::is_assign);
    const std::span<const MessagePart> alike = to.first(static_cast<std::size_t>(other - to.begin()));
    auto& [source, target] = out.emplace_back();
    source = {from[0].reduction, {}, from[0].is_assign, from[0].is_injective};
    target = {to[0].reduction, {}, to[0].is_assign, to[0].is_injective && alike.size() == 1};
    Piece both;
    both.tracks.resize(tracks);  // the place is the last
    for (const MessagePart& part : alike) {
      list_track(part.piece, part.piece.tracks[0], both.tracks.back().bases);
      Words order;
      list_track(part.piece, part.piece.tracks.back(), order);
      for (const std::int64_t position : order) {
        const std::int64_t n = (position - first) / element_bytes;
        if (n < 0 || n >= sent || position != first + n * element_bytes) return std::nullopt;
        for (std::size_t k = 0; k + 1 < tracks; ++k)
          both.tracks[k].bases.push_back(sources[k][static_cast<std::size_t>(n)]);
      }
    }
    both.list_length = std::ssize(both.tracks.back().bases);
    simplify(both);
    target.piece = {both.list_length, both.counts, {both.tracks.back()}};
    source.piece = std::move(both);
    to = to.subspan(alike.size());
  }
  return out;
}

/// The pair in parts that are faster: runs of several lengths each by itself, lines that are met twice soon again.
void add_arranged(const Statement& s, std::pair<MessagePart, MessagePart> pair, JoinedEnds& to) {
  auto& [source, target] = pair;
  Piece both = std::move(source.piece);
  both.tracks.back() = std::move(target.piece.tracks[0]);
  std::vector<Piece> parts = split_into_runs(both);
  if (parts.empty()) parts.push_back(std::move(both));
  const Reduction& r = s.reductions[static_cast<std::size_t>(source.reduction)];
  const bool is_within_buffer =
      r.value->kind == ExprKind::element && r.value->id == r.place->id && target.is_assign && target.is_injective;
  for (Piece& part : parts) {
    if (is_within_buffer && part.tracks.size() == 2)
      walk_shared_lines_together(part, 2, static_cast<std::int64_t>(r.value_type.size_bytes), true);
    Piece places{part.list_length, part.counts, {part.tracks.back()}};
    to.emplace_back(MessagePart{source.reduction, std::move(part), source.is_assign, source.is_injective},
                    MessagePart{target.reduction, std::move(places), target.is_assign, target.is_injective});
  }
}

}  // namespace

std::optional<JoinedEnds> join_ends(const Statement& s, std::vector<MessagePart> from, std::vector<MessagePart> to) {
  JoinedEnds out;
  if (match_pairwise(from, to)) {
    for (std::size_t k = 0; k < from.size(); ++k) add_arranged(s, {std::move(from[k]), std::move(to[k])}, out);
    return out;
  }
  const auto end_of = [](const std::vector<MessagePart>& parts, std::size_t begin) {
    std::size_t end = begin;
    while (end < parts.size() && parts[end].reduction == parts[begin].reduction) ++end;
    return end;
  };
  std::size_t f = 0, t = 0;
  while (f < from.size() && t < to.size()) {
    const std::size_t last_from = end_of(from, f), last_to = end_of(to, t);
    if (from[f].reduction != to[t].reduction) return std::nullopt;
    const auto element_bytes =
        static_cast<std::int64_t>(s.reductions[static_cast<std::size_t>(from[f].reduction)].value_type.size_bytes);
    auto pairs = listed({from.data() + f, last_from - f}, {to.data() + t, last_to - t}, element_bytes);
    if (!pairs) return std::nullopt;
    for (auto& pair : *pairs) add_arranged(s, std::move(pair), out);
    f = last_from;
    t = last_to;
  }
  if (f < from.size() || t < to.size()) return std::nullopt;
  return out;
}

std::vector<MetShares> meet_shares(const Statement& s, const JoinedEnds& own, const Message& arrived) {
  if (own.size() != arrived.parts.size() || !are_apart(s, {&arrived, 1})) return {};
  std::vector<MetShares> out;
  for (std::size_t k = 0; k < own.size(); ++k) {
    MetShares met{own[k].first, own[k].second, arrived.parts[k]};
    Piece &mine = met.from.piece, &theirs = met.arrived.piece;
    for (const Piece* p : {&mine, &theirs})
      if (std::ranges::any_of(p->tracks, &Track::is_listed)) return {};
    if (met.to.reduction != met.arrived.reduction || !met.to.is_injective || !met.arrived.is_injective ||
        !match_nests(mine, theirs) || mine.tracks.back() != theirs.tracks[0])
      return {};
    met.to.piece = {mine.list_length, mine.counts, {mine.tracks.back()}};
    out.push_back(std::move(met));
  }
  return out;
}

}  // namespace kplan
