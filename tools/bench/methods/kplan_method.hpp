#pragma once
// kplan as a program uses it: a plan, values, buffers bound, and run.

#include "kplan/engine.hpp"
#include "tools/bench/exchange/exchange.hpp"
#include "tools/bench/methods/method.hpp"

namespace kplan::bench {

/// A plan's buffers and the memory that they are bound to.
using Bindings = std::vector<std::pair<std::string, std::span<std::byte>>>;

/// The arrays of an exchange, by the names that the plan gives them.
Bindings bindings_of(const Exchange& exchange, const std::vector<std::string>& names);

/// Whether messages are read in place, as from memory of engine.allocate that is written often or seldom, or packed, as
/// from any memory.
enum class Lending : std::uint8_t { off, if_written_often, if_written_seldom };

/// `before` is what a program does with the executable before each run, such as setting varying parameters.
Method kplan_method(const Team& team, Plan plan, Values values, Bindings bindings,
                    std::function<void(Executable&)> before = nullptr, Lending lending = Lending::off);

}  // namespace kplan::bench
