#pragma once
// MPI's derived datatypes for regions, by the constructors that fit: subarrays for boxes, nested vectors for other
// loops, indexed blocks for lists, structures where there are several.

#include "tools/bench/exchange/exchange.hpp"
#include "tools/bench/team.hpp"

namespace kplan::bench {

MPI_Datatype basic_type(Scalar type);

/// Where the types of an exchange's regions count from: their array, or MPI_BOTTOM where several arrays take part.
void* type_base(const Exchange& exchange, const std::vector<Link>& links);

/// The committed type of a region, counted from type_base.
OwnedType region_type(const Region& region, const Exchange& exchange, const void* base);

}  // namespace kplan::bench
