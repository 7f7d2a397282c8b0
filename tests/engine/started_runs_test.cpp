// Plans of several phases that are under way together, and waited for in another order on every rank.
#include <catch2/catch.hpp>

#include "tests/engine/on_ranks.hpp"

using namespace kplan;

namespace {

constexpr std::int64_t count = 20000;

/// Round the ring and on: each statement sends what the one before brought.
Plan twice_round(const std::string& name) {
  return Plan::parse(R"json({"kplan": 1, "name": ")json" + name +
                     R"json(", "parameters": {"n": {"type": "i64"}}, "buffers": {
    "a": {"type": "f64", "shape": ["n"]}, "b": {"type": "f64", "shape": ["n"]}, "c": {"type": "f64", "shape": ["n"]},
    "d": {"type": "f64", "shape": ["n"]}},
    "statements": [
      {"communicate": "b@(r + 1) % size <<= a@r where r in world"},
      {"communicate": "c[k]@(r + 1) % size <<= b[n - 1 - k]@r where r in world, k in range(n)"},
      {"communicate": "d@r << sum << c@s where r in world, s in world", "fresh": true}]})json");
}

struct Arrays {
  std::vector<double> a = std::vector<double>(count), b = a, c = a, d = a;
  Executable x;

  Arrays(Engine& engine, const char* name) : x(engine.compile(twice_round(name), {{"n", count}})) {
    x.bind("a", a);
    x.bind("b", b);
    x.bind("c", c);
    x.bind("d", d);
  }
  void set(int rank, int run) {
    for (std::size_t k = 0; k < a.size(); ++k)
      a[k] = static_cast<double>((rank + 1) * (run + 1) + static_cast<int>(k) % 7);
  }
  bool is_right(int rank, int size, int run) const {
    const auto given = [&](int from, std::size_t k) { return (from + 1) * (run + 1) + static_cast<int>(k) % 7; };
    for (std::size_t k = 0; k < a.size(); ++k) {
      double sum = 0;
      for (int from = 0; from < size; ++from) sum += given(from, a.size() - 1 - k);
      if (c[k] != given((rank + size - 2) % size, a.size() - 1 - k) || d[k] != sum) return false;
    }
    return true;
  }
};

}  // namespace

TEST_CASE("ranks wait for plans of several phases in different orders") {
  for (const int size : {2, 3, 4})
    tests::on_ranks(size, [=](Engine& engine) {
      Arrays x(engine, "x"), y(engine, "y");
      const int rank = engine.rank();
      for (int run = 0; run < 20; ++run) {
        x.set(rank, run);
        y.set(rank, run + 100);
        switch ((rank + run / 5) % 4) {
          case 0:
            x.x.start();
            y.x.start();
            y.x.wait();
            x.x.wait();
            break;
          case 1:
            x.x.run();
            y.x.run();
            break;
          case 2:
            x.x.start();
            y.x.run();
            x.x.wait();
            break;
          default:
            x.x.start();
            y.x.start();
            x.x.wait();
            y.x.wait();
        }
        tests::claim(x.is_right(rank, size, run) && y.is_right(rank, size, run + 100), "both have come");
      }
    });
}

TEST_CASE("a started plan of several phases may be dropped while another is waited for") {
  tests::on_ranks(2, [](Engine& engine) {
    Arrays y(engine, "y");
    {
      Arrays x(engine, "x");
      x.set(engine.rank(), 0);
      x.x.start();
    }
    y.set(engine.rank(), 1);
    y.x.run();
    tests::claim(y.is_right(engine.rank(), 2, 1), "it has come");
  });
}

namespace {

/// What ranks ask each other for changes at every run, and so do the values that decide a settled pattern.
constexpr const char* varying_plan = R"json({"kplan": 1, "name": "varying",
  "parameters": {"shift": {"type": "i64", "time": "varying", "default": 0}},
  "buffers": {"a": {"type": "i64", "shape": [8]}, "b": {"type": "i64", "shape": [8]}, "c": {"type": "i64", "shape": [8]},
    "from": {"type": "i64", "shape": [8], "time": "varying"}},
  "statements": [
    {"communicate": "b[k]@rank <<= a[k]@from[k] where k in range(8)", "direction": "pull"},
    {"communicate": "c[(k + shift) % 8]@(rank + shift) % size <<= b[k]@rank where k in range(8)"}]})json";

struct Varying {
  std::vector<std::int64_t> a = std::vector<std::int64_t>(8), b = a, c = a, from = a;
  Executable x;

  explicit Varying(Engine& engine) : x(engine.compile(Plan::parse(varying_plan, "varying"))) {
    x.bind("a", a);
    x.bind("b", b);
    x.bind("c", c);
    x.bind("from", from);
  }
  static std::int64_t source(std::int64_t rank, std::int64_t size, std::int64_t run, std::int64_t k) {
    return (rank + run + k) % size;
  }
  static std::int64_t value(std::int64_t rank, std::int64_t run, std::int64_t k) { return 1000 * run + 10 * rank + k; }
  void set(std::int64_t rank, std::int64_t size, std::int64_t run) {
    for (std::int64_t k = 0; k < 8; ++k) {
      a[static_cast<std::size_t>(k)] = value(rank, run, k);
      from[static_cast<std::size_t>(k)] = source(rank, size, run, k);
    }
    x.set("shift", run % 3);
  }
  bool is_right(std::int64_t rank, std::int64_t size, std::int64_t run) const {
    const std::int64_t shift = run % 3, sender = (rank + size * 3 - shift) % size;
    for (std::int64_t k = 0; k < 8; ++k)
      if (c[static_cast<std::size_t>((k + shift) % 8)] != value(source(sender, size, run, k), run, k)) return false;
    return true;
  }
};

}  // namespace

TEST_CASE("ranks wait for plans with varying patterns in different orders") {
  for (const int size : {2, 3, 5})
    tests::on_ranks(size, [=](Engine& engine) {
      Varying x(engine), y(engine);
      const int rank = engine.rank();
      for (int run = 0; run < 12; ++run) {
        x.set(rank, size, run);
        y.set(rank, size, run + 100);
        const bool is_x_first = (rank + run / 4) % 2 == 0;
        x.x.start();
        y.x.start();
        (is_x_first ? x : y).x.wait();
        (is_x_first ? y : x).x.wait();
        tests::claim(x.is_right(rank, size, run) && y.is_right(rank, size, run + 100), "both have come");
      }
    });
}
