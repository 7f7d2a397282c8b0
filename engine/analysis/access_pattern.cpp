#include "engine/analysis/access_pattern.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "plans/arithmetic.hpp"

namespace kplan {
namespace {

// Tracks may carry any 64-bit words (see Notice): sums and differences of theirs wrap.
std::int64_t difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
std::int64_t product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

/// Of numbers that are not negative; more than fits: the largest.
std::int64_t bounded_product(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? INT64_MAX : out;
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

/// The bases that are listed; steps have the same gap everywhere.
using Lists = std::vector<const std::int64_t*>;
Lists lists_of(const Piece& p) {
  Lists out;
  for (const Track& t : p.tracks)
    if (t.is_listed()) out.push_back(t.bases.data());
  return out;
}

/// The gap behind entry o.
std::int64_t gap(const std::int64_t* bases, std::size_t o) { return difference(bases[o + 1], bases[o]); }

/// The length L > 1 such that the list is made of runs of L entries with one constant gap, or 1.
std::int64_t regular_run(const Piece& p) {
  const auto n = static_cast<std::size_t>(p.list_length);
  if (n < 2) return 1;
  const Lists lists = lists_of(p);
  if (lists.empty()) return p.list_length;
  const auto continues = [&](std::size_t o) {
    return std::ranges::all_of(lists, [&](const std::int64_t* bases) { return gap(bases, o - 1) == gap(bases, 0); });
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
bool have_one_gap(const Lists& lists, std::size_t o, std::size_t other) {
  return std::ranges::all_of(lists, [&](const std::int64_t* bases) { return gap(bases, o) == gap(bases, other); });
}

/// Consecutive runs of a list that have one length and one gap.
struct Runs {
  std::size_t first = 0, end = 0, length = 1;  ///< entries
};

/// How many entries from `o` on have one gap.
std::size_t run_at(const Lists& lists, std::size_t o, std::size_t n) {
  std::size_t end = o + 1;
  while (end < n && have_one_gap(lists, end - 1, o)) ++end;
  return end - o;
}

/// The first entry from `o` on that could begin a run of three or more.
std::size_t next_run(const std::int64_t* bases, std::size_t o, std::size_t n) {
  if (o + 2 >= n) return n;
  for (std::int64_t last = gap(bases, o); o + 2 < n; ++o) {
    const std::int64_t next = gap(bases, o + 1);
    if (next == last) return o;
    last = next;
  }
  return n;
}

/// The list as a few groups of runs; nothing where there would be many.
std::vector<Runs> find_runs(const Piece& p) {
  constexpr std::size_t shortest_run = 4, most_groups = 32, least_entries_of_a_group = 16;
  const auto n = static_cast<std::size_t>(p.list_length);
  const Lists lists = lists_of(p);
  std::vector<Runs> out;
  for (std::size_t o = 0; o < n;) {
    std::size_t length = run_at(lists, o, n), end = o + length;
    if (length < shortest_run) {
      length = 1;
      end = std::max(o + 1, next_run(lists[0], o, n));
    }
    const bool continues =
        !out.empty() && out.back().length == length && (length == 1 || have_one_gap(lists, out.back().first, o));
    if (!continues) out.push_back({o, o, length});
    out.back().end = o = end;
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
    t.strides.insert(t.strides.begin(), t.is_listed() ? gap(t.bases.data(), 0) : t.step);
    if (!t.is_listed()) {
      t.step = product(t.step, run);
      continue;
    }
    Words kept;
    for (std::size_t o = 0; o < t.bases.size(); o += static_cast<std::size_t>(run)) kept.push_back(t.bases[o]);
    t.bases = std::move(kept);
  }
  p.list_length /= run;
  return true;
}

/// Whether the bases go from the first to the last one in these steps without wrapping.
bool goes_straight(std::int64_t first, std::int64_t last, std::int64_t step, std::int64_t count) {
  return static_cast<Wide>(last) - first == static_cast<Wide>(step) * (count - 1);
}

/// Gives a step to bases that have one.
void fold_bases(Track& t, std::int64_t list_length) {
  if (list_length == 1) t.step = 0;
  if (!t.is_listed()) return;
  const std::int64_t step = gap(t.bases.data(), 0);
  for (std::size_t o = 1; o + 1 < t.bases.size(); ++o)
    if (gap(t.bases.data(), o) != step) return;
  if (!goes_straight(t.bases[0], t.bases.back(), step, list_length)) return;
  t.bases = {t.bases[0]};
  t.step = step;
}

}  // namespace

Words Track::listed_bases(std::int64_t count) const {
  if (is_listed()) return bases;
  Words out(static_cast<std::size_t>(count));
  for (std::int64_t o = 0; o < count; ++o) out[static_cast<std::size_t>(o)] = base(o);
  return out;
}

void GrowingTrack::append(std::span<const std::int64_t> bases) {
  if (bases.empty()) return;
  if (track_.is_listed()) {
    track_.bases.insert(track_.bases.end(), bases.begin(), bases.end());
    return;
  }
  if (count_ == 0) track_.bases = {bases[0]};
  if (count_ < 2 && count_ + std::ssize(bases) > 1)
    track_.step = difference(bases[static_cast<std::size_t>(1 - count_)], track_.bases[0]);
  const std::int64_t step = track_.step;
  std::int64_t other = bases[0] ^ track_.base(count_);  // 0 while all bases are those that the step gives
  for (std::size_t k = 1; k < bases.size(); ++k) other |= difference(bases[k], bases[k - 1]) ^ step;
  if (other != 0) {
    list();
    track_.bases.insert(track_.bases.end(), bases.begin(), bases.end());
  } else {
    count_ += std::ssize(bases);
  }
}

Track GrowingTrack::take() && {
  if (!track_.is_listed() && !goes_straight(track_.bases[0], track_.base(count_ - 1), track_.step, count_)) list();
  return std::move(track_);
}

void GrowingTrack::list() {
  if (count_ == 0) track_.bases.clear();
  else track_.bases = track_.listed_bases(count_);
  track_.step = 0;
}

std::int64_t Piece::block_elements() const {
  std::int64_t out = 1;
  for (const std::int64_t c : counts) out = bounded_product(out, c);
  return out;
}

std::int64_t Piece::element_count() const { return bounded_product(list_length, block_elements()); }

void unfold_dimension(Piece& p) {
  const std::int64_t count = p.counts[0];
  for (Track& t : p.tracks) {
    Words bases;
    bases.reserve(static_cast<std::size_t>(p.list_length * count));
    for (std::int64_t o = 0; o < p.list_length; ++o)
      for (std::int64_t k = 0; k < count; ++k) bases.push_back(difference(t.base(o), product(-k, t.strides[0])));
    t.bases = std::move(bases);
    t.step = 0;
  }
  p.list_length *= count;
  drop_dimension(p, 0);
}

void simplify(Piece& p) {
  join_dimensions(p);
  while (fold_list(p)) join_dimensions(p);
  while (p.counts.size() > most_piece_dimensions) unfold_dimension(p);
  for (Track& t : p.tracks) fold_bases(t, p.list_length);
}

namespace {

/// The iterations [first, end) of the outermost loop, the list if there is one; one alone is no loop any more.
Piece iterations(const Piece& piece, std::int64_t first, std::int64_t end) {
  Piece out = piece;
  if (piece.list_length > 1) {
    out.list_length = end - first;
    for (Track& t : out.tracks) t = part_of(t, first, end);
    return out;
  }
  for (Track& t : out.tracks) t.bases[0] = difference(t.bases[0], product(-first, t.strides[0]));
  out.counts[0] = end - first;
  if (end - first == 1) drop_dimension(out, 0);
  return out;
}

/// Appends elements [first, end): what there is of the first and of the last iteration, and those between as a whole.
void add_part(const Piece& piece, std::int64_t first, std::int64_t end, std::vector<Piece>& to) {
  if (first == end) return;
  if (piece.element_count() == 1) return to.push_back(piece);
  const std::int64_t inner = piece.list_length > 1 ? piece.block_elements() : piece.block_elements() / piece.counts[0];
  std::int64_t from = first / inner;
  const std::int64_t last = end / inner, before = first % inner, rest = end % inner;
  if (from == last) return add_part(iterations(piece, from, from + 1), before, rest, to);
  if (before > 0) {
    add_part(iterations(piece, from, from + 1), before, inner, to);
    ++from;
  }
  if (from < last) to.push_back(iterations(piece, from, last));
  if (rest > 0) add_part(iterations(piece, last, last + 1), 0, rest, to);
}

}  // namespace

std::vector<Piece> part_of(const Piece& piece, std::int64_t first, std::int64_t end) {
  std::vector<Piece> out;
  add_part(piece, first, end, out);
  for (Piece& part : out) simplify(part);
  return out;
}

void append(std::vector<Piece>& pieces, Piece next) {
  if (next.element_count() == 0) return;
  if (!pieces.empty()) {
    Piece& last = pieces.back();
    const bool is_same_shape = last.counts == next.counts &&
                               std::ranges::equal(last.tracks, next.tracks, {}, &Track::strides, &Track::strides);
    if (is_same_shape) {
      for (std::size_t t = 0; t < last.tracks.size(); ++t) {
        Track& track = last.tracks[t];
        if (!track.is_listed()) track.bases = track.listed_bases(last.list_length);
        track.step = 0;
        for (std::int64_t o = 0; o < next.list_length; ++o) track.bases.push_back(next.tracks[t].base(o));
      }
      last.list_length += next.list_length;
      return;
    }
  }
  pieces.push_back(std::move(next));
}

Track part_of(const Track& track, std::int64_t first, std::int64_t end) {
  if (!track.is_listed()) return {{track.base(first)}, track.strides, end - first > 1 ? track.step : 0};
  return {{track.bases.begin() + first, track.bases.begin() + end}, track.strides};
}

std::vector<Piece> split_into_runs(const Piece& piece) {
  if (std::ranges::none_of(piece.tracks, &Track::is_listed)) return {};
  const std::vector<Runs> groups = find_runs(piece);
  if (groups.size() < 2) return {};
  std::vector<Piece> out;
  for (const Runs& g : groups) {
    Piece part{static_cast<std::int64_t>(g.end - g.first), piece.counts, {}};
    for (const Track& t : piece.tracks)
      part.tracks.push_back(part_of(t, static_cast<std::int64_t>(g.first), static_cast<std::int64_t>(g.end)));
    simplify(part);
    out.push_back(std::move(part));
  }
  return out;
}

Reach reach_of(const Piece& piece, const Track& track) {
  Reach out{track.bases[0], track.bases[0]};
  for (const std::int64_t base : track.bases) {
    out.lowest = std::min(out.lowest, base);
    out.highest = std::max(out.highest, base);
  }
  const auto extend = [&out](std::int64_t count, std::int64_t stride) {
    const Wide span = static_cast<Wide>(count - 1) * stride;
    if (span < 0) out.lowest = static_cast<std::int64_t>(std::max<Wide>(out.lowest + span, INT64_MIN));
    else out.highest = static_cast<std::int64_t>(std::min<Wide>(out.highest + span, INT64_MAX));
  };
  if (!track.is_listed()) extend(piece.list_length, track.step);
  for (std::size_t d = 0; d < piece.counts.size(); ++d) extend(piece.counts[d], track.strides[d]);
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
