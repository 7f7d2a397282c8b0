#pragma once
// Where the programs run: on 1 to 8 ranks that are threads of this process, one world after the other (threads.cpp), or
// on the processes that mpirun has started (processes.cpp). Whichever is linked.

#include <functional>
#include <kplan/kplan.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <string>

namespace kplan::programs {

/// Runs `program` on every rank of a world, for every world there is. What it throws fails the test.
void on_ranks(const std::function<void(Engine&)>& program);

/// Throws std::runtime_error unless it holds.
inline void claim(bool holds, std::string_view what) {
  if (!holds) throw std::runtime_error("does not hold: " + std::string(what));
}

}  // namespace kplan::programs
