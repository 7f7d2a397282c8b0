// Fields of records that a statement moves one by one.
#include "engine/analysis/joined_fields.hpp"

#include <catch2/catch.hpp>

#include "kplan/kplan.hpp"

using namespace kplan;

namespace {

struct Particle {
  double x, y, z;
  float charge, spin;
  std::int64_t id;
};

Plan moving(const std::string& statement) {
  return Plan::parse(R"json({"kplan": 1, "name": "p", "types": {"particle": {"fields": [
    {"name": "x", "type": "f64"}, {"name": "y", "type": "f64"}, {"name": "z", "type": "f64"},
    {"name": "charge", "type": "f32"}, {"name": "spin", "type": "f32"}, {"name": "id", "type": "i64"}]}},
    "parameters": {"n": {"type": "i64"}}, "buffers": {"p": {"type": "particle", "shape": ["2 * n"]},
    "q": {"type": "particle", "shape": ["2 * n"]}, "m": {"type": "i64", "shape": ["2 * n"]}},
    "statements": [{"communicate": ")json" +
                     statement + R"json(where k in range(n)"}]})json");
}

/// The sizes of the statement's reductions once fields are joined.
std::vector<std::size_t> sizes(const std::string& statement) {
  const Plan plan = moving(statement);
  const auto model = with_joined_fields({std::shared_ptr<const PlanModel>(), &plan.model()});
  std::vector<std::size_t> out;
  for (const Reduction& r : model->statements[0].reductions) out.push_back(r.value_type.size_bytes);
  return out;
}

const std::string to = "@(rank + 1) % size <<= ";

}  // namespace

TEST_CASE("fields that lie side by side at both ends travel together") {
  using Sizes = std::vector<std::size_t>;
  CHECK(sizes("q[n+k].x" + to + "p[k].x@rank, q[n+k].y" + to + "p[k].y@rank, q[n+k].z" + to + "p[k].z@rank ") ==
        Sizes{24});
  CHECK(sizes("q[n+k].z" + to + "p[k].z@rank, q[n+k].charge" + to + "p[k].charge@rank ") == Sizes{12});
  CHECK(sizes("m[k]" + to + "m[n+k]@rank, q[n+k].x" + to + "p[k].x@rank, q[n+k].y" + to + "p[k].y@rank ") ==
        Sizes{8, 16});
  // Others do not: gaps, other elements, other ranks, other order, other ends, sums.
  CHECK(sizes("q[n+k].x" + to + "p[k].x@rank, q[n+k].z" + to + "p[k].z@rank ") == Sizes{8, 8});
  CHECK(sizes("q[n+k].x" + to + "p[k].x@rank, q[n+k].y" + to + "p[k+1].y@rank ") == Sizes{8, 8});
  CHECK(sizes("q[n+k].x" + to + "p[k].x@rank, q[n+k].y@(rank + 2) % size <<= p[k].y@rank ") == Sizes{8, 8});
  CHECK(sizes("q[n+k].y" + to + "p[k].y@rank, q[n+k].x" + to + "p[k].x@rank ") == Sizes{8, 8});
  CHECK(sizes("q[n+k].x" + to + "p[k].y@rank, q[n+k].y" + to + "p[k].x@rank ") == Sizes{8, 8});
  CHECK(sizes("q[n+k].x@(rank + 1) % size << sum << p[k].x@rank, q[n+k].y@(rank + 1) % size << sum << p[k].y@rank ") ==
        Sizes{8, 8});
  CHECK(sizes("q[n+k].x" + to + "p[k].x@rank, q[n+k].y" + to + "p[k].y@rank, q[k].id" + to + "p[k].id@rank ") ==
        Sizes{8, 8, 8});
}

TEST_CASE("joined fields arrive where they belong, and nothing else is touched") {
  const Plan plan = moving("q[n+k].y" + to + "p[2*k].y@rank, q[n+k].z" + to + "p[2*k].z@rank, q[n+k].charge" + to +
                           "p[2*k].charge@rank ");
  for (const int ranks : {1, 2, 3}) {
    transport::run_local(ranks, [&](std::shared_ptr<transport::Transport> transport) {
      Engine engine(std::move(transport));
      const int n = 100;
      Executable e = engine.compile(plan, {{"n", n}});
      std::vector<Particle> p(2 * n), q(2 * n, Particle{-1, -1, -1, -1, -1, -1});
      for (int k = 0; k < 2 * n; ++k)
        p[k] = {k + 0.1, k + 0.2, k + 0.3, static_cast<float>(k), 0, 1000 * engine.rank() + k};
      e.bind_bytes("p", std::as_writable_bytes(std::span(p)));
      e.bind_bytes("q", std::as_writable_bytes(std::span(q)));
      e.run();
      for (int k = 0; k < n; ++k) {
        const Particle &there = q[n + k], &from = p[2 * k];
        if (there.y != from.y || there.z != from.z || there.charge != from.charge || there.x != -1 ||
            there.spin != -1 || there.id != -1 || q[k].y != -1)
          throw std::runtime_error("particle " + std::to_string(k) + " is wrong");
      }
    });
  }
}
