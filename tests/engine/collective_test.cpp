// Statements that are collective operations: which, and what runs them. The transport's own are run by
// tests/engine/mpi, with KPLAN_COLLECTIVES=native.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "kplan/kplan.hpp"

using namespace kplan;

namespace {

/// What rank 1 of so many finds the statement to be; empty: nothing of the kind.
std::string form_of(const std::string& statement, int ranks = 4) {
  const Plan plan =
      Plan::parse(R"json({"kplan": 1, "name": "p", "buffers": {"a": {"type": "f64", "shape": ["4 * size"]},
    "b": {"type": "f64", "shape": ["4 * size"]}}, "statements": [{"communicate": ")json" +
                  statement + "\"}]}");
  std::string out;
  transport::run_local(ranks, [&](std::shared_ptr<transport::Transport> transport) {
    Engine engine(std::move(transport));
    const auto schedule = nlohmann::json::parse(engine.compile(plan).schedule_json());
    if (engine.rank() == 1) out = schedule["statements"][0].value("collective", "");
  });
  return out;
}

}  // namespace

TEST_CASE("statements that all ranks have the same part in are recognised as collective operations") {
  CHECK(form_of("a[k]@r <<= b[k]@2 where r in world, k in range(4)") == "broadcast from 2");
  CHECK(form_of("a[k]@r <<= a[k]@2 where r in world, r != 2, k in range(4)") == "broadcast from 2");
  CHECK(form_of("a[k]@r <<= b[4 * r + k]@2 where r in world, k in range(4)") == "scatter from 2");
  CHECK(form_of("a[4 * r + k]@1 <<= b[k]@r where r in world, k in range(1 + r)") == "gather to 1");
  CHECK(form_of("a[4 * r + k]@s <<= b[k]@r where r in world, s in world, k in range(1 + r)") == "allgather");
  CHECK(form_of("a[4 * r + k]@s <<= b[4 * s + k]@r where r in world, s in world, k in range(1 + r)") == "alltoall");
  CHECK(form_of("a[k]@3 << sum << b[k]@r where r in world, k in range(4)") == "reduce to 3");
  CHECK(form_of("a[k]@s << sum << b[k]@r where r in world, s in world, k in range(4)") == "allreduce");
  CHECK(form_of("a[k]@s << sum << b[4 * s + k]@r where r in world, s in world, k in range(4)") == "reduce-scatter");
  CHECK(form_of("a[k]@1 <<= b[k]@0 where k in range(4)", 2) == "broadcast from 0");
}

TEST_CASE("statements that leave a rank out, or treat ranks differently, are messages") {
  CHECK(form_of("a[k]@r <<= b[k]@2 where r in world, r != 3, k in range(4)") == "");
  CHECK(form_of("a[k]@(r + 1) % size <<= b[k]@r where r in world, k in range(4)") == "");
  CHECK(form_of("a[4 * r + k]@s <<= b[k]@r where r in world, s in world, s != (r + 1) % size, k in range(4)") == "");
  CHECK(form_of("a[k]@(r == 0 ? 1 : 0) << sum << b[k]@r where r in world, k in range(4)") == "");
  CHECK(form_of("a[k]@r <<= b[k]@r where r in world, k in range(4)") == "");
}
