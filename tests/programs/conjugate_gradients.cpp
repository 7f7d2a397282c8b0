#include "tests/programs/conjugate_gradients.hpp"

#include <cmath>
#include <numeric>

namespace kplan::programs {
namespace {

Plan sum_everywhere() {
  PlanBuilder plan("sum-everywhere");
  plan.buffer("part", Scalar::f64, {}).buffer("total", Scalar::f64, {});
  plan.communicate("sum", "total@r << sum << part@s where s in world, r in world").fresh();
  return plan.build();
}

/// Dot products of distributed vectors: the same bits on all ranks.
class Dot {
 public:
  explicit Dot(Engine& engine) : sum_(engine.compile(sum_everywhere())) {
    sum_.bind("part", part_);
    sum_.bind("total", total_);
  }
  Dot(const Dot&) = delete;  // what is bound stays where it is
  Dot& operator=(const Dot&) = delete;

  double operator()(std::span<const double> a, std::span<const double> b) {
    part_ = std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
    sum_.run();
    return total_;
  }

 private:
  double part_ = 0, total_ = 0;
  Executable sum_;
};

}  // namespace

Solution solve(Engine& engine, DistributedMatrix& a, std::span<const double> b, double tolerance,
               std::int64_t most_steps) {
  Dot dot(engine);
  Solution out{std::vector<double>(b.size()), 0};
  std::vector<double> r(b.begin(), b.end()), p = r;
  double rr = dot(r, r);
  const double enough = tolerance * tolerance * rr;
  for (; rr > enough && out.step_count < most_steps; ++out.step_count) {
    const std::vector<double> ap = a.multiply(p);
    const double alpha = rr / dot(p, ap);
    for (std::size_t i = 0; i < p.size(); ++i) {
      out.x[i] += alpha * p[i];
      r[i] -= alpha * ap[i];
    }
    const double before = std::exchange(rr, dot(r, r));
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = r[i] + rr / before * p[i];
  }
  return out;
}

}  // namespace kplan::programs
