#pragma once
// PETSc's star forests, where it was found at configure time.

#include <string>

namespace kplan::bench {

/// The version, empty in builds without PETSc.
std::string petsc_version();
/// Around everything that uses PETSc, inside MPI_Init and MPI_Finalize.
void begin_petsc();
void end_petsc();

}  // namespace kplan::bench
