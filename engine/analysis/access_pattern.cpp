#include "engine/analysis/access_pattern.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace kplan {
namespace {

// Tracks may carry any 64-bit words (see Notice): sums and differences of theirs wrap.
std::int64_t difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
std::int64_t product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

void drop_dimension(Piece& p, std::size_t d) {
  p.counts.erase(p.counts.begin() + static_cast<std::ptrdiff_t>(d));
  for (Track& t : p.tracks) t.strides.erase(t.strides.begin() + static_cast<std::ptrdiff_t>(d));
}

void join_dimensions(Piece& p) {
  for (std::size_t d = p.counts.size(); d-- > 0;)
    if (p.counts[d] == 1) drop_dimension(p, d);
  for (std::size_t d = p.counts.size(); d-- > 1;) {
    const bool joins = std::ranges::all_of(
        p.tracks, [&](const Track& t) { return t.strides[d - 1] == product(t.strides[d], p.counts[d]); });
    if (!joins) continue;
    p.counts[d - 1] *= p.counts[d];
    for (Track& t : p.tracks) t.strides[d - 1] = t.strides[d];
    drop_dimension(p, d);
  }
}

/// The length L > 1 such that the list is made of runs of L entries with one constant gap, or 1.
std::int64_t regular_run(const Piece& p) {
  const auto n = static_cast<std::size_t>(p.list_length);
  if (n < 2) return 1;
  const auto continues = [&](std::size_t o) {
    return std::ranges::all_of(p.tracks, [&](const Track& t) {
      return t.bases.size() == 1 || difference(t.bases[o], t.bases[o - 1]) == difference(t.bases[1], t.bases[0]);
    });
  };
  std::int64_t length = 0, run = 1;
  for (std::size_t o = 1; o < n; ++o) {
    if (continues(o)) {
      ++run;
      continue;
    }
    length = std::gcd(length, run);
    if (length == 1) return 1;
    run = 1;
  }
  return std::gcd(length, run);
}

/// Whether entry o of the list is followed by its next one as `other` is by its own.
bool have_one_gap(const Piece& p, std::size_t o, std::size_t other) {
  return std::ranges::all_of(p.tracks, [&](const Track& t) {
    return difference(t.bases[o + 1], t.bases[o]) == difference(t.bases[other + 1], t.bases[other]);
  });
}

/// Consecutive runs of a list that have one length and one gap.
struct Runs {
  std::size_t first = 0, end = 0, length = 1;  ///< entries
};

/// How many entries from `o` on have one gap.
std::size_t run_at(const Piece& p, std::size_t o) {
  const auto n = static_cast<std::size_t>(p.list_length);
  std::size_t end = o + 1;
  while (end < n && have_one_gap(p, end - 1, o)) ++end;
  return end - o;
}

/// The list as a few groups of runs; nothing where there would be many.
std::vector<Runs> find_runs(const Piece& p) {
  constexpr std::size_t shortest_run = 4, most_groups = 32, least_entries_of_a_group = 16;
  const auto n = static_cast<std::size_t>(p.list_length);
  std::vector<Runs> out;
  for (std::size_t o = 0; o < n;) {
    std::size_t length = run_at(p, o);
    if (length < shortest_run) length = 1;
    const bool continues =
        !out.empty() && out.back().length == length && (length == 1 || have_one_gap(p, out.back().first, o));
    if (!continues) out.push_back({o, o, length});
    out.back().end = o += length;
    if (out.size() > most_groups || out.size() * least_entries_of_a_group > n) return {};
  }
  return out;
}

/// Turns the regular runs of the list into a dimension.
bool fold_list(Piece& p) {
  const std::int64_t run = regular_run(p);
  if (run < 2) return false;
  p.counts.insert(p.counts.begin(), run);
  for (Track& t : p.tracks) {
    t.strides.insert(t.strides.begin(), t.bases.size() == 1 ? 0 : difference(t.bases[1], t.bases[0]));
    if (t.bases.size() == 1) continue;
    std::vector<std::int64_t> kept;
    for (std::size_t o = 0; o < t.bases.size(); o += static_cast<std::size_t>(run)) kept.push_back(t.bases[o]);
    t.bases = std::move(kept);
  }
  p.list_length /= run;
  return true;
}

}  // namespace

std::int64_t Piece::block_elements() const {
  std::int64_t out = 1;
  for (const std::int64_t c : counts) out *= c;
  return out;
}

void unfold_dimension(Piece& p) {
  const std::int64_t count = p.counts[0];
  for (Track& t : p.tracks) {
    std::vector<std::int64_t> bases;
    for (std::int64_t o = 0; o < p.list_length; ++o)
      for (std::int64_t k = 0; k < count; ++k)
        bases.push_back(
            difference(t.bases[t.bases.size() == 1 ? 0 : static_cast<std::size_t>(o)], product(-k, t.strides[0])));
    t.bases = std::move(bases);
  }
  p.list_length *= count;
  drop_dimension(p, 0);
}

void simplify(Piece& p) {
  join_dimensions(p);
  while (fold_list(p)) join_dimensions(p);
  while (p.counts.size() > most_piece_dimensions) unfold_dimension(p);
  if (p.list_length == 1) return;
  for (Track& t : p.tracks)
    if (t.bases.size() == 1) t.bases.assign(static_cast<std::size_t>(p.list_length), t.bases[0]);
}

void append(std::vector<Piece>& pieces, Piece next) {
  if (next.element_count() == 0) return;
  if (!pieces.empty()) {
    Piece& last = pieces.back();
    const bool is_same_shape = last.counts == next.counts &&
                               std::ranges::equal(last.tracks, next.tracks, {}, &Track::strides, &Track::strides);
    if (is_same_shape) {
      for (std::size_t t = 0; t < last.tracks.size(); ++t) {
        auto& bases = last.tracks[t].bases;
        if (bases.size() == 1) bases.assign(static_cast<std::size_t>(last.list_length), bases[0]);
        const auto& more = next.tracks[t].bases;
        for (std::int64_t o = 0; o < next.list_length; ++o)
          bases.push_back(more[more.size() == 1 ? 0 : static_cast<std::size_t>(o)]);
      }
      last.list_length += next.list_length;
      return;
    }
  }
  pieces.push_back(std::move(next));
}

std::vector<Piece> split_into_runs(const Piece& piece) {
  const auto is_listed = [&](const Track& t) { return t.bases.size() == static_cast<std::size_t>(piece.list_length); };
  if (piece.list_length < 2 || !std::ranges::all_of(piece.tracks, is_listed)) return {};
  const std::vector<Runs> groups = find_runs(piece);
  if (groups.size() < 2) return {};
  std::vector<Piece> out;
  for (const Runs& g : groups) {
    Piece part{static_cast<std::int64_t>(g.end - g.first), piece.counts, {}};
    for (const Track& t : piece.tracks)
      part.tracks.push_back({{t.bases.begin() + static_cast<std::ptrdiff_t>(g.first),
                              t.bases.begin() + static_cast<std::ptrdiff_t>(g.end)},
                             t.strides});
    simplify(part);
    out.push_back(std::move(part));
  }
  return out;
}

Reach reach_of(const Piece& piece, const Track& track) {
  const auto [lo, hi] = std::ranges::minmax_element(track.bases);
  Reach out{*lo, *hi};
  for (std::size_t d = 0; d < piece.counts.size(); ++d) {
    const std::int64_t span = (piece.counts[d] - 1) * track.strides[d];
    (span < 0 ? out.lowest : out.highest) += span;
  }
  return out;
}

bool is_surely_injective(const Piece& piece, const Track& track, std::int64_t element_size) {
  if (piece.list_length > 1) return false;
  std::vector<std::pair<std::int64_t, std::int64_t>> dims;  // |stride|, count
  for (std::size_t d = 0; d < piece.counts.size(); ++d)
    if (piece.counts[d] > 1) dims.emplace_back(std::abs(track.strides[d]), piece.counts[d]);
  std::ranges::sort(dims);
  std::int64_t extent = element_size;
  for (const auto& [stride, count] : dims) {
    if (stride < extent) return false;
    extent += stride * (count - 1);
  }
  return true;
}

}  // namespace kplan
