// What memory can be bound, how long it lives, and how its type is compared with the plan's.
#include <catch2/catch.hpp>

#include "tests/engine/on_ranks.hpp"

using namespace kplan;

TEST_CASE("an empty function is no operator") {
  tests::on_ranks(1, [](Engine& engine) {
    const std::string error = tests::error_of([&] { engine.register_operator("op", nullptr); });
    tests::claim(error == "operator `op` is an empty function; register one that can be called [KP-B031]", error);
  });
}
