// What stands for PetscSF in builds without PETSc.
#include "tools/bench/methods/exchange_methods.hpp"
#include "tools/bench/petsc_sf.hpp"

namespace kplan::bench {

std::string petsc_version() { return ""; }
void begin_petsc() {}
void end_petsc() {}
std::vector<Method> star_forests(SharedExchange, int) { return {}; }

}  // namespace kplan::bench
