#pragma once
// Faults in a where-list: a clause that cannot be evaluated in some environment is an error, also where a later clause
// would leave that environment out (language.md section 2: read left to right). The solver, which uses all clauses at
// once, does not come by such environments.

#include "engine/analysis/solver.hpp"

namespace kplan {

/// Looks for a fault in the environments of the rank of `state`. Throws SolverFault with the environment; KP-A010 where
/// it takes too long to find out. Costs nothing for clauses that plainly cannot fault.
void check_clauses(const Knowing& knowing);

}  // namespace kplan
