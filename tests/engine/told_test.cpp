// Patterns that only one end of a message knows, found once or at every run; groups; native operators.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/engine/on_ranks.hpp"

using namespace kplan;
using kplan::tests::claim;
using kplan::tests::on_ranks;

namespace {

const char* strided =
    R"({"kplan": 1, "name": "p", "parameters": {"stride": {"type": "i64", "scope": "private"}},
    "buffers": {"A": {"type": "f64", "shape": ["size", 11]}, "B": {"type": "f64", "shape": [11]}},
    "statements": [{"name": "s", "communicate": "A[j, k]@i <<= B[k]@j where i in world, j in world, k in {0 ... 10}, k % stride == 0"}]})";

}  // namespace

TEST_CASE("receivers learn a private stride when the plan is compiled") {
  for (const int ranks : {1, 2, 3, 5, 8})
    on_ranks(ranks, [&](Engine& engine) {
      const int mine = engine.rank() % 4 + 1;
      Executable e = engine.compile(Plan::parse(strided), {{"stride", mine}});
      std::vector<double> a(static_cast<std::size_t>(11 * ranks), -1), b(11);
      e.bind("A", a);
      e.bind("B", b);
      for (int run = 0; run < 20; ++run) {
        for (std::size_t k = 0; k < 11; ++k) b[k] = 1000 * engine.rank() + 20.0 * run + static_cast<double>(k);
        e.run();
        for (int j = 0; j < ranks; ++j)
          for (int k = 0; k < 11; ++k) {
            const double expected = k % (j % 4 + 1) == 0 ? 1000.0 * j + 20.0 * run + k : -1;
            claim(a[static_cast<std::size_t>(11 * j + k)] == expected, "a strided element is wrong");
          }
      }
    });
}

TEST_CASE("a ghost gather of irregular private indices fetches every value") {
  constexpr int owned = 1000, ghosts = 5000;
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "ghosts", "parameters": {"n": "i64", "g": {"type": "i64", "scope": "private"}},
    "buffers": {"x": {"type": "f64", "shape": ["n + g"]}, "owner": {"type": "i32", "shape": ["g"], "time": "fixed"},
                "index": {"type": "i64", "shape": ["g"], "time": "fixed"}},
    "statements": [{"direction": "pull", "communicate": "x[n + k]@rank <<= x[i]@o where k in {0 ... g-1}, i = index[k], o = owner[k]"}]})");
  on_ranks(4, [&](Engine& engine) {
    std::vector<std::int32_t> owner(ghosts);
    std::vector<std::int64_t> index(ghosts);
    std::uint64_t random = 12345 + static_cast<std::uint64_t>(engine.rank());
    for (std::size_t k = 0; k < ghosts; ++k) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      owner[k] = static_cast<std::int32_t>(random >> 33) % 4;
      index[k] = static_cast<std::int64_t>(random >> 13) % owned;
      if (index[k] < 0) index[k] += owned;
      if (owner[k] < 0) owner[k] += 4;
    }
    Executable e = engine.compile(plan, {{"n", owned}, {"g", ghosts}, {"owner", owner}, {"index", index}});
    std::vector<double> x(owned + ghosts, -1);
    for (int i = 0; i < owned; ++i) x[static_cast<std::size_t>(i)] = 10000.0 * engine.rank() + i;
    e.bind("x", x);
    e.run();
    for (std::size_t k = 0; k < ghosts; ++k)
      claim(x[owned + k] == 10000.0 * owner[k] + static_cast<double>(index[k]), "a ghost is wrong");
  });
}

TEST_CASE("what a sender may not write is an error on every rank when the plan is compiled") {
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "p", "parameters": {"at": {"type": "i64", "scope": "private"}}, "buffers": {"a": {"type": "f64", "shape": [4]}},
    "statements": [{"name": "s", "communicate": "a[p]@0 <<= a[0]@rank where p = at"}]})");
  std::vector<std::string> messages(3);
  on_ranks(3, [&](Engine& engine) {
    try {
      engine.compile(plan, {{"at", engine.rank() == 2 ? 9 : engine.rank()}});
    } catch (const PlanError& e) {
      messages[static_cast<std::size_t>(engine.rank())] = e.what();
    }
  });
  for (const std::string& m : messages)
    CHECK_THAT(m, Catch::Contains("index 9 is outside the 4 elements of `a`") &&
                      Catch::Contains("when p = 9, told by rank 2, rank 0") && Catch::Contains("[KP-P052]"));
  on_ranks(3, [&](Engine& engine) {
    try {
      engine.compile(plan, {{"at", engine.rank() == 2 ? 1 : engine.rank()}});
    } catch (const PlanError& e) {
      messages[static_cast<std::size_t>(engine.rank())] = e.what();
    }
  });
  for (const std::string& m : messages)
    CHECK_THAT(m,
               Catch::Contains("element 1 of `a` on rank 0 is assigned twice: from rank 1 when p = 1 and from rank 2 "
                               "when p = 1"));
}

TEST_CASE("a subscript outside an index buffer of equal elements is found") {
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "p", "buffers": {"y": {"type": "f64", "shape": [4]}, "at": {"type": "i32", "shape": [3], "time": "fixed"}},
    "statements": [{"communicate": "y[at[k]]@(rank + 1) % size << sum << y[0]@rank where k in {0 ... 9}"}]})");
  on_ranks(2, [&](Engine& engine) {
    std::string message;
    try {
      engine.compile(plan, {{"at", std::vector<std::int32_t>(3)}});
    } catch (const PlanError& e) {
      message = e.what();
    }
    claim(message.find("index 3 is outside the 3 elements of `at` when k = 3") != std::string::npos, message);
  });
}

TEST_CASE("a fixed buffer whose contents were given is not bound") {
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "p", "buffers": {"y": {"type": "f64", "shape": [4]}, "at": {"type": "i32", "shape": [3], "time": "fixed"}},
    "statements": [{"communicate": "y[at[k]]@rank << sum << y[0]@rank where k in {0 ... 2}"}]})");
  on_ranks(1, [&](Engine& engine) {
    std::vector<std::int32_t> at(3);
    Executable e = engine.compile(plan, {{"at", at}});
    std::string message;
    try {
      e.bind("at", at);
    } catch (const PlanError& error) {
      message = error.what();
    }
    claim(message.find("[KP-B027]") != std::string::npos, message);
  });
}

TEST_CASE("contents of a fixed buffer are shared with the value given, and kept for runs that read them") {
  const auto plan_of = [](const std::string& statement) {
    return Plan::parse(
        R"({"kplan": 1, "name": "p", "buffers": {"y": {"type": "f64", "shape": [4]}, "at": {"type": "i32", "shape": [3], "time": "fixed"}},
    "statements": [{"communicate": ")" +
        statement + R"("}]})");
  };
  on_ranks(2, [&](Engine& engine) {
    const Value at(std::vector<std::int32_t>{2, 0, 3});
    const auto contents = at.shared_bytes();
    std::vector<double> y(4);
    const auto run = [&](const std::string& statement, long owners) {
      Executable e = engine.compile(plan_of(statement), {{"at", at}});
      claim(contents.use_count() == 2 + owners, statement + " keeps " + std::to_string(contents.use_count()));
      y = {1, 2, 3, 4};
      e.bind("y", y);
      e.run();
    };
    run("y[at[k]]@(rank + 1) % size << sum << y[1]@rank where k in {0 ... 2}", 0);
    claim(y == std::vector<double>{3, 2, 5, 6}, "places are found by contents that are gone");
    run("y[k]@(rank + 1) % size <<= at[k]@rank where k in {0 ... 2}", 1);
    claim(y == std::vector<double>{2, 0, 3, 4}, "contents are sent");
    run("y[at[k]]@(rank + 1) % size << sum << 12 / at[1 + k]@rank where k in {1}",
        2);  // one waits for its plan to come again
    claim(y == std::vector<double>{5, 2, 3, 4}, "contents are divided by");
  });
}

TEST_CASE("fields of fixed records decide what is fetched from where") {
  struct Ghost {
    std::int32_t owner;
    std::int64_t index;
  };
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "p", "types": {"ghost": {"fields": [{"name": "owner", "type": "i32"}, {"name": "index", "type": "i64"}]}},
    "buffers": {"x": {"type": "f64", "shape": [10]}, "ghosts": {"type": "ghost", "shape": [3], "time": "fixed"}},
    "statements": [{"direction": "pull", "communicate": "x[7 + k]@rank <<= x[i]@o where k in {0 ... 2}, i = ghosts[k].index, o = ghosts[k].owner"}]})");
  on_ranks(3, [&](Engine& engine) {
    std::vector<Ghost> ghosts;
    for (int k = 0; k < 3; ++k) ghosts.push_back({(engine.rank() + k) % 3, 2 * k + engine.rank()});
    Executable e = engine.compile(plan, {{"ghosts", Value::records(std::as_bytes(std::span(ghosts)))}});
    std::vector<double> x(10);
    for (int i = 0; i < 7; ++i) x[static_cast<std::size_t>(i)] = 10 * engine.rank() + i;
    e.bind("x", x);
    e.run();
    for (int k = 0; k < 3; ++k)
      claim(x[static_cast<std::size_t>(7 + k)] == 10 * ((engine.rank() + k) % 3) + 2 * k + engine.rank(),
            "a ghost is wrong");
  });
}

TEST_CASE("a varying pattern is read anew at every run") {
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "p", "parameters": {"count": {"type": "i64", "scope": "private", "time": "varying"}},
    "buffers": {"box": {"type": "i64", "shape": ["size", 8]}, "out": {"type": "i64", "shape": [8]}, "to": {"type": "i32", "shape": [8], "time": "varying"}},
    "statements": [{"communicate": "box[s, k]@to[k] <<= out[k]@rank where s = rank, k in {0 ... count-1}"}]})");
  for (const int ranks : {1, 2, 3, 5})
    on_ranks(ranks, [&](Engine& engine) {
      Executable e = engine.compile(plan, {{"count", 0}});
      std::vector<std::int64_t> box(static_cast<std::size_t>(8 * ranks)), out(8);
      std::vector<std::int32_t> to(8);
      e.bind("box", box);
      e.bind("out", out);
      e.bind("to", to);
      const auto target = [&](int run, int rank, int k) { return (rank * 3 + k * k + run) % ranks; };
      const auto count = [&](int run, int rank) { return (rank + run * 5) % 9; };
      for (int run = 0; run < 200; ++run) {
        std::fill(box.begin(), box.end(), -1);
        for (int k = 0; k < 8; ++k) {
          to[static_cast<std::size_t>(k)] = target(run, engine.rank(), k);
          out[static_cast<std::size_t>(k)] = 100 * engine.rank() + k + 1000 * run;
        }
        e.set("count", count(run, engine.rank()));
        e.run();
        for (int s = 0; s < ranks; ++s)
          for (int k = 0; k < 8; ++k) {
            const bool comes = k < count(run, s) && target(run, s, k) == engine.rank();
            claim(box[static_cast<std::size_t>(8 * s + k)] == (comes ? 100 * s + k + 1000 * run : -1),
                  "a varying element is wrong");
          }
      }
    });
}

TEST_CASE("a mistake in a varying pattern is thrown by its run on every rank, and the next run is right") {
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "p", "parameters": {"to": {"type": "i64", "scope": "private", "time": "varying"}},
    "buffers": {"a": {"type": "i64", "shape": ["size"]}}, "statements": [{"name": "s", "communicate": "a[p]@to <<= 7@rank where p = rank"}]})");
  on_ranks(3, [&](Engine& engine) {
    Executable e = engine.compile(plan, {{"to", 0}});
    std::vector<std::int64_t> a(3, -1);
    e.bind("a", a);
    e.set("to", engine.rank() == 1 ? 3 : 0);
    std::string message;
    try {
      e.run();
    } catch (const PlanError& error) {
      message = error.what();
    }
    claim(message.find("the receiver 3 is not among") != std::string::npos,
          "rank " + std::to_string(engine.rank()) + ": " + message);
    e.set("to", (engine.rank() + 1) % 3);
    e.run();
    claim(a[static_cast<std::size_t>((engine.rank() + 2) % 3)] == 7, "the run after a failed one is wrong");
  });
}

TEST_CASE("statements run within groups by colour and key") {
  // Even ranks in descending order, odd ones in ascending order; each passes its world rank on within its group.
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "p", "buffers": {"got": {"type": "i64", "shape": [2]}, "me": {"type": "i64", "shape": [1]}},
    "groups": {"half": {"color": "rank % 2", "key": "rank % 2 == 0 ? 0 - rank : rank"}, "few": {"color": "rank < 2 ? 5 : 0 - 1"}},
    "statements": [{"in": "half", "communicate": "got[0]@(rank + 1) % size <<= me[0]@rank"},
                   {"in": "few", "communicate": "got[1] @ 0 << sum << me[0] + 100 * size @ i where i in few"}]})");
  for (const int ranks : {1, 2, 3, 5, 8})
    on_ranks(ranks, [&](Engine& engine) {
      Executable e = engine.compile(plan);
      std::vector<std::int64_t> got(2, 0), me{engine.rank()};
      e.bind("got", got);
      e.bind("me", me);
      e.run();
      const bool is_even = engine.rank() % 2 == 0;
      const int last_even = (ranks - 1) / 2 * 2, last_odd = (ranks - 2) / 2 * 2 + 1;
      const int before = is_even ? (engine.rank() == last_even ? 0 : engine.rank() + 2)
                                 : (engine.rank() == 1 ? last_odd : engine.rank() - 2);
      claim(got[0] == before, "the neighbour in the group is wrong");
      const std::int64_t sum = ranks == 1 ? 100 : 0 + 1 + 2 * 200;
      claim(got[1] == (engine.rank() == 0 ? sum : 0), "the sum in the group is wrong");
    });
}

TEST_CASE("an operator that is a C++ function is called on blocks, in the order of ranks") {
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "p", "buffers": {"a": {"type": "f64", "shape": [1000]}, "b": {"type": "f32", "shape": [1000]}},
    "operators": {"mine": {"native": true, "commutative": false}},
    "statements": [{"name": "s", "communicate": "a[k % 700]@0 << mine << b[k]@s where s in world, k in {0 ... 999}"}]})");
  on_ranks(3, [&](Engine& engine) {
    std::size_t calls = 0, elements = 0;
    engine.register_operator("mine", [&](void* places, const void* values, std::size_t count) {
      auto* place = static_cast<double*>(places);
      const auto* value = static_cast<const double*>(values);
      for (std::size_t k = 0; k < count; ++k) place[k] = 2 * place[k] + value[k];
      ++calls;
      elements += count;
    });
    Executable e = engine.compile(plan);
    std::vector<double> a(1000, 1), expected(1000, 1);
    std::vector<float> b(1000);
    for (std::size_t k = 0; k < 1000; ++k) b[k] = static_cast<float>(engine.rank() * 1000) + static_cast<float>(k);
    e.bind("a", a);
    e.bind("b", b);
    e.run();
    if (engine.rank() != 0) return;
    for (int s = 0; s < 3; ++s)
      for (std::size_t k = 0; k < 1000; ++k)
        expected[k % 700] = 2 * expected[k % 700] + static_cast<double>(s * 1000) + static_cast<double>(k);
    claim(a == expected, "a native operator gave something else");
    claim(elements == 3000 && calls < 30, "it was not called on blocks");
  });
  on_ranks(2, [&](Engine& engine) {
    std::string message;
    try {
      engine.compile(plan);
    } catch (const PlanError& e) {
      message = e.what();
    }
    claim(message.find("call engine.register_operator(\"mine\", ...) before compile [KP-B030]") != std::string::npos,
          message);
  });
}

TEST_CASE("executables in flight together may be ended in another order on every rank") {
  const Plan plan = Plan::parse(strided);
  const Plan moving = Plan::parse(
      R"({"kplan": 1, "name": "m", "parameters": {"to": {"type": "i64", "scope": "private", "time": "varying"}},
    "buffers": {"a": {"type": "i64", "shape": ["size"]}}, "statements": [{"communicate": "a[p]@to <<= 10 * to + rank@rank where p = rank"}]})");
  on_ranks(4, [&](Engine& engine) {
    Executable x = engine.compile(plan, {{"stride", engine.rank() + 1}}), y = engine.compile(moving, {{"to", 0}}),
               z = engine.compile(moving, {{"to", 0}});
    std::vector<double> a(44), b(11, engine.rank());
    std::vector<std::int64_t> u(4), v(4);
    x.bind("A", a);
    x.bind("B", b);
    y.bind("a", u);
    z.bind("a", v);
    for (int run = 0; run < 50; ++run) {
      y.set("to", (engine.rank() + run) % 4);
      z.set("to", (engine.rank() + 3 * run) % 4);
      // Started and ended in an order of each rank's own: each has channels and exchanges of its own.
      Executable* order[] = {&x, &y, &z};
      std::rotate(order, order + (engine.rank() + run) % 3, order + 3);
      for (Executable* e : order) e->start();
      std::rotate(order, order + engine.rank() % 3, order + 3);
      for (Executable* e : order) e->wait();
      const int from = (engine.rank() + 400 - run) % 4;
      claim(u[static_cast<std::size_t>(from)] == 10 * engine.rank() + from, "y is wrong");
      const int other = (engine.rank() + 400 - 3 * run) % 4;
      claim(v[static_cast<std::size_t>(other)] == 10 * engine.rank() + other, "z is wrong");
    }
  });
}

TEST_CASE("a plan is compiled and run while another is in flight") {
  const Plan plan = Plan::parse(strided);
  on_ranks(3, [&](Engine& engine) {
    Executable x = engine.compile(plan, {{"stride", 2}});
    std::vector<double> a(33, -1), b(11, engine.rank()), c(33, -1);
    x.bind("A", a);
    x.bind("B", b);
    for (int run = 0; run < 10; ++run) {
      x.start();
      Executable y = engine.compile(plan, {{"stride", engine.rank() + 1 + run % 2}});
      y.bind("A", c);
      y.bind("B", b);
      y.run();
      x.wait();
      for (int j = 0; j < 3; ++j)
        claim(a[static_cast<std::size_t>(11 * j + 2)] == j && c[static_cast<std::size_t>(11 * j)] == j,
              "an element is wrong");
    }
  });
}

TEST_CASE("a rank that does not start what others wait for is named within the time-out") {
  // Both a fixed statement and a varying one.
  for (const char* time : {"fixed", "varying"}) {
    const Plan plan = Plan::parse(
        std::string(
            R"({"kplan": 1, "name": "late", "parameters": {"n": {"type": "i64", "scope": "private", "time": ")") +
        time + R"("}}, "buffers": {"a": {"type": "i64", "shape": [4]}}, "statements": [)" +
        R"({"name": "s", "communicate": "a[k]@(rank + 1) % size <<= k@rank where k in {0 ... n - 1}"}]})");
    setenv("KPLAN_TIMEOUT", "0.3", 1);
    std::string message;
    std::atomic<bool> is_told = false;
    on_ranks(2, [&](Engine& engine) {
      Executable e = engine.compile(plan, {{"n", 2}});
      std::vector<std::int64_t> a(4);
      e.bind("a", a);
      e.run();
      if (engine.rank() == 0) {
        try {
          e.run();
        } catch (const TransportError& error) {
          message = error.what();
        }
        is_told = true;
        return;
      }
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (!is_told && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    });
    unsetenv("KPLAN_TIMEOUT");
    CHECK_THAT(message, Catch::Contains("plan late, statement s: rank 0 waits for") && Catch::Contains("rank 1") &&
                            Catch::Contains("timed out after 0.3 s in run 1; KPLAN_TIMEOUT sets the limit [KP-T004]"));
  }
}
