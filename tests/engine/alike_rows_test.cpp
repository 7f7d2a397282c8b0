// Rows of several reductions that share where their elements are, at one end or at both, and some that do not.
#include <catch2/catch.hpp>
#include <string>

#include "tests/engine/on_ranks.hpp"

using namespace kplan;
using kplan::tests::claim;
using kplan::tests::error_of;
using kplan::tests::on_ranks;

namespace {

/// Of particles: `a`, `b` and `c` have one shape, `d` another.
Plan fields_of_particles(const std::string& clauses, const std::string& index, const std::string& place,
                         const std::string& to, const std::string& from, const std::string& direction) {
  std::string reductions;
  for (const auto* const names : {"a", "b", "c", "d"})
    reductions +=
        std::string("new_") + names + "[" + place + "]@" + to + " <<= " + names + "[" + index + "]@" + from + ", ";
  for (const auto* const names : {"a", "b"})
    reductions += std::string("sum_") + names + "[" + place + "]@" + to + " << sum << " + names + "[" + index + "]@" +
                  from + (*names == 'a' ? ", " : "");
  return Plan::parse(R"({"kplan": 1, "name": "particles", "parameters": {"n": "i64", "room": "i64"}, "buffers": {
    "a": {"type": "f64", "shape": ["n"]}, "b": {"type": "f64", "shape": ["n"]}, "c": {"type": "f32", "shape": ["n"]},
    "d": {"type": "f64", "shape": ["n + 1"]},
    "new_a": {"type": "f64", "shape": ["size * room"]}, "new_b": {"type": "f64", "shape": ["size * room"]},
    "new_c": {"type": "f32", "shape": ["size * room"]}, "new_d": {"type": "f64", "shape": ["size * room + 2"]},
    "sum_a": {"type": "f64", "shape": ["size * room"]}, "sum_b": {"type": "f64", "shape": ["size * room"]},
    "list": {"type": "i32", "shape": ["size", "room"], "scope": "private", "time": "varying"},
    "count": {"type": "i32", "shape": ["size"], "scope": "private", "time": "varying"}},
    "statements": [{"name": "s", "direction": ")" +
                     direction + R"(", "communicate": ")" + reductions + " where " + clauses + R"("}]})");
}

class Particles {
 public:
  static constexpr int n = 200, room = 40;

  Particles(Engine& engine, const Plan& plan)
      : rank_(engine.rank()), size_(engine.size()), e_(engine.compile(plan, {{"n", n}, {"room", room}})) {
    const auto slots = static_cast<std::size_t>(size_ * room);
    a.resize(n), b.resize(n), c.resize(n), d.resize(n + 1), list.resize(slots),
        count.resize(static_cast<std::size_t>(size_));
    for (auto* to : {&new_a, &new_b, &sum_a, &sum_b}) to->resize(slots);
    new_c.resize(slots), new_d.resize(slots + 2);
    for (int k = 0; k < n; ++k) {
      const auto at = static_cast<std::size_t>(k);
      a[at] = value(rank_, k), b[at] = value(rank_, k) + 0.25, c[at] = static_cast<float>(k),
      d[at] = value(rank_, k) + 0.5;
    }
    e_.bind("a", a), e_.bind("b", b), e_.bind("c", c), e_.bind("d", d), e_.bind("list", list), e_.bind("count", count);
    e_.bind("new_a", new_a), e_.bind("new_b", new_b), e_.bind("new_c", new_c), e_.bind("new_d", new_d);
    e_.bind("sum_a", sum_a), e_.bind("sum_b", sum_b);
  }

  static double value(int rank, int k) { return 1000.0 * rank + k; }
  /// Entry k of the list for `to` that a rank has in a run.
  static int entry(int rank, int to, int k, int run) { return (5 * rank + 3 * to + 7 * k + run * k) % n; }
  static int count_of(int rank, int to, int run) { return (11 * rank + 17 * to + 13 * run) % (room + 1); }

  void draw(int run) {
    for (int r = 0; r < size_; ++r) {
      count[static_cast<std::size_t>(r)] = count_of(rank_, r, run);
      for (int k = 0; k < room; ++k) list[static_cast<std::size_t>(r * room + k)] = entry(rank_, r, k, run);
    }
    for (auto* to : {&new_a, &new_b, &new_d, &sum_a, &sum_b}) std::ranges::fill(*to, -1.0);
    std::ranges::fill(new_c, -1.0F);
  }
  void run() { e_.run(); }

  /// `is_push`: lists are those of the ranks that send.
  void check(int run, bool is_push) const {
    for (int from = 0; from < size_; ++from)
      for (int k = 0; k < room; ++k) {
        const int number = is_push ? count_of(from, rank_, run) : count_of(rank_, from, run);
        const int index = is_push ? entry(from, rank_, k, run) : entry(rank_, from, k, run);
        const auto at = static_cast<std::size_t>(from * room + k);
        const bool has_come = k < number;
        const double came = value(from, index);
        claim(new_a[at] == (has_come ? came : -1), "an element of `a` is wrong");
        claim(new_b[at] == (has_come ? came + 0.25 : -1), "an element of `b` is wrong");
        claim(new_c[at] == (has_come ? static_cast<float>(index) : -1), "an element of `c` is wrong");
        claim(new_d[at] == (has_come ? came + 0.5 : -1), "an element of `d` is wrong");
        claim(sum_a[at] == (has_come ? came - 1 : -1), "a sum of `a` is wrong");
        claim(sum_b[at] == (has_come ? came - 0.75 : -1), "a sum of `b` is wrong");
      }
  }

  std::vector<double> a, b, d, new_a, new_b, new_d, sum_a, sum_b;
  std::vector<float> c, new_c;
  std::vector<std::int32_t> list, count;

 private:
  int rank_, size_;
  Executable e_;
};

}  // namespace

TEST_CASE("fields of particles that lists choose anew in every run, pushed and pulled", "[alike-rows]") {
  const Plan push = fields_of_particles("s = rank, to in world, k in range(count[to])", "list[to, k]", "s * room + k",
                                        "to", "s", "push");
  const Plan pull =
      fields_of_particles("s in world, k in range(count[s]), i = list[s, k]", "i", "s * room + k", "rank", "s", "pull");
  for (const int ranks : {1, 2, 3})
    for (const bool is_push : {true, false})
      on_ranks(ranks, [&](Engine& engine) {
        Particles particles(engine, is_push ? push : pull);
        for (int run = 0; run < 6; ++run) {
          particles.draw(run);
          particles.run();
          particles.check(run, is_push);
        }
        // An index that only `d` has is outside the others.
        particles.draw(0);
        const int outside = engine.rank() == 0 ? Particles::n : 0;
        particles.count[0] = 1, particles.list[0] = outside;
        claim(error_of([&] { particles.run(); }).find("index 200 is outside the 200 elements of `a`") !=
                  std::string::npos,
              "an index outside is not told");
        claim(particles.new_d[0] == -1, "a run that fails has written");
        particles.draw(1);
        particles.run();
        particles.check(1, is_push);
      });
}
