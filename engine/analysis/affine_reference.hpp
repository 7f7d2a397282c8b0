#pragma once
// Buffer references over a box of environments, in closed form: subscripts that are affine over the box give a base and
// a stride for each where-bound number, slices give dimensions inside. Nothing is given where no closed form is found.

#include <optional>
#include <vector>

#include "engine/analysis/solver.hpp"

namespace kplan {

/// One dimension of a slice along a track.
struct SliceDimension {
  std::int64_t count = 1, stride = 0;
};

/// An element reference over a box: affine in the environment, with slice dimensions inside.
struct AffineReference {
  std::int64_t base = 0;
  std::vector<std::int64_t> strides;  ///< by number
  std::vector<SliceDimension> slices;
};

/// A where-bound number itself: its first value and how it grows.
std::optional<AffineReference> affine_number(int number, const Box& box);

/// An element or slice, in bytes from the start of a buffer with the layout. Throws SolverFault with one environment
/// where it leaves the buffer.
std::optional<AffineReference> affine_element(const Formula& formula, const Layout& layout, const Expr& e,
                                              const Box& box);

/// The slices of all references as the same dimensions: the counts, or nothing where they do not fit into each other.
/// References of one element are repeated.
std::optional<std::vector<std::int64_t>> refine_slices(std::vector<AffineReference>& references);

/// How many elements a reference has in every environment of the box, on a rank with the given layouts; nothing when
/// that varies.
std::optional<std::int64_t> element_count_of(const Formula& formula, const Layout& layout, const Expr& e,
                                             const Box& box);

/// The number of elements in one environment, by its slices alone. Throws EvaluationFault.
std::int64_t element_count_at(const Layout& layout, const Expr& e, const EvaluationContext& context);
/// The same of several references on the rank that evaluates: where some have one element, others say how many.
std::int64_t element_count_at(const std::vector<const Expr*>& references, const EvaluationContext& context);

/// The elements in one environment, in bytes from the start of the buffer; else as `select`.
std::vector<std::int64_t> select_bytes(const Expr& element, const EvaluationContext& context);

}  // namespace kplan
