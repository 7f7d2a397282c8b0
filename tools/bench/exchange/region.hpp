#pragma once
// Which elements of a rank's arrays, in which order: nests of loops, boxes among them, and lists of indices. Everything
// that the alternatives need is derived from these: loops that pack, datatypes, indices of star forests.

#include <cstdint>
#include <variant>
#include <vector>

#include "kplan/types.hpp"

namespace kplan::bench {

/// One array of a rank, row-major.
struct Array {
  Scalar type = Scalar::f64;
  std::vector<std::int64_t> shape;
  std::byte* data = nullptr;

  std::int64_t element_count() const;
  std::size_t size_bytes() const { return static_cast<std::size_t>(element_count()) * size_of(type); }
};

/// `count` steps of `stride` elements.
struct Loop {
  std::int64_t count = 1, stride = 1;
};

/// Nested loops over an array, outermost first.
struct Nest {
  int array = 0;
  std::int64_t first = 0;  ///< element at the loops' start
  std::vector<Loop> loops;
  /// Where it is a box of the array: its first subscripts and its extents.
  std::vector<std::int64_t> starts, extents;

  std::int64_t element_count() const;
};

/// Blocks of `block` elements at `indices[k] * unit + offset`.
struct IndexList {
  int array = 0;
  std::vector<std::int32_t> indices;
  int unit = 1, offset = 0, block = 1;
};

using Piece = std::variant<Nest, IndexList>;
using Region = std::vector<Piece>;

/// A box of an array, row-major.
Nest box(const Array& array, int number, std::vector<std::int64_t> starts, std::vector<std::int64_t> extents);

/// The same elements with fewer loops: those that continue each other are one, single steps are left out.
Nest simplified(Nest nest);

/// Simplifies two nests of the same extents alike. False, and nothing is changed, where extents differ.
bool simplify_together(Nest& a, Nest& b);

std::int64_t element_count(const Region& region);

/// The same elements, with lists that are made of runs of one length (but for the last) as lists of these runs.
Region in_runs(const Region& region);

/// Where the region lies in one piece in one array, in order: its first element, else -1.
struct Run {
  int array = -1;
  std::int64_t first = 0;
  bool exists() const { return array >= 0; }
};
Run contiguous_run(const Region& region);

/// All elements in order, as numbers within their arrays.
struct Element {
  int array;
  std::int64_t number;
};
std::vector<Element> elements_of(const Region& region);

}  // namespace kplan::bench
