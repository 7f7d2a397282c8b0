#pragma once
// Everything a program needs, but for handing over an MPI communicator: that is kplan/mpi.hpp.

#include "kplan/engine.hpp"   // IWYU pragma: export
#include "kplan/error.hpp"    // IWYU pragma: export
#include "kplan/plan.hpp"     // IWYU pragma: export
#include "kplan/types.hpp"    // IWYU pragma: export
#include "kplan/version.hpp"  // IWYU pragma: export
#include "kplan/world.hpp"    // IWYU pragma: export
