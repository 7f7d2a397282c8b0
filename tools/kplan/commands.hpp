#pragma once
// The commands. Each returns an exit code, or throws what the library throws; main turns that into one.

#include "tools/kplan/options.hpp"

namespace kplan::cli {

int check(const Options& options);
int explain(const Options& options);
int show(const Options& options);
int run(const Options& options);

}  // namespace kplan::cli
