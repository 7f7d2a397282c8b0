// The engine as a program uses it: ranks as threads.
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <numeric>

#include "kplan/kplan.hpp"
#include "kplan/transport.hpp"

using namespace kplan;

namespace {

Plan even_exchange() {
  return Plan::parse(
      R"({"kplan": 1, "name": "even", "buffers": {"A": {"type": "f64", "shape": ["size"]}, "B": {"type": "f64", "shape": ["size"]}},
    "statements": [{"communicate": "A[j]@i <<= B[i]@j where i in world, j in world, i % 2 == 0"}]})");
}

/// The message of what `body` throws on every one of `ranks` ranks, each wanted to throw an E.
template <class E, class Body>
std::vector<std::string> messages_on(int ranks, const Body& body) {
  std::vector<std::string> out(static_cast<std::size_t>(ranks));
  transport::run_local(ranks, [&](std::shared_ptr<transport::Transport> transport) {
    const auto rank = static_cast<std::size_t>(transport->rank());
    Engine engine(transport);
    try {
      body(engine);
    } catch (const E& e) {
      out[rank] = e.what();
    }
  });
  return out;
}

}  // namespace

TEST_CASE("every rank with an even number collects one element from everybody, again and again") {
  for (const int ranks : {1, 2, 3, 5})
    transport::run_local(ranks, [&](std::shared_ptr<transport::Transport> transport) {
      Engine engine(transport);
      Executable exchange = engine.compile(even_exchange());
      const auto n = static_cast<std::size_t>(ranks);
      std::vector<double> a(n, -1), b(n);
      exchange.bind("A", a);
      exchange.bind("B", b);
      for (int run = 0; run < 100; ++run) {
        for (std::size_t i = 0; i < n; ++i) b[i] = 1000.0 * run + 10 * engine.rank() + static_cast<double>(i);
        exchange.run();
        for (std::size_t j = 0; j < n; ++j) {
          const double expected =
              engine.rank() % 2 == 0 ? 1000.0 * run + 10.0 * static_cast<double>(j) + engine.rank() : -1;
          if (a[j] != expected) FAIL("rank " << engine.rank() << " run " << run << ": " << a[j] << " != " << expected);
        }
      }
    });
}

TEST_CASE("a statement that reads what it writes reads everything first") {
  const Plan shift = Plan::parse(R"({"kplan": 1, "name": "shift", "buffers": {"a": {"type": "i32", "shape": [100]}},
    "statements": [{"communicate": "a@(rank + 1) % size <<= a@rank"}]})");
  for (const int ranks : {1, 2, 3, 5})
    transport::run_local(ranks, [&](std::shared_ptr<transport::Transport> transport) {
      Engine engine(transport);
      Executable e = engine.compile(shift);
      std::vector<std::int32_t> a(100, engine.rank());
      e.bind("a", a);
      for (int k = 1; k <= 2 * ranks; ++k) {
        e.run();
        const int expected = ((engine.rank() - k) % ranks + ranks) % ranks;
        for (const std::int32_t v : a)
          if (v != expected) FAIL("rank " << engine.rank() << " after " << k << " shifts: " << v);
      }
    });
}

TEST_CASE("floating-point sums are taken in ascending sender rank, on every run") {
  const Plan sum = Plan::parse(
      R"({"kplan": 1, "name": "sum", "buffers": {"total": {"type": "f64", "shape": []}, "x": {"type": "f64", "shape": []}},
    "statements": [{"communicate": "total@0 << sum << x@s where s in world"}]})");
  transport::run_local(5, [&](std::shared_ptr<transport::Transport> transport) {
    Engine engine(transport);
    Executable e = engine.compile(sum);
    // Not associative: 1e16 swallows what comes after it.
    const double values[] = {1.0, 1e16, 3.0, -1e16, 7.0};
    double x = values[engine.rank()];
    for (int run = 0; run < 50; ++run) {
      double total = 0.5;
      e.bind("total", total);
      e.bind("x", x);
      e.run();
      double expected = 0.5;
      for (const double v : values) expected += v;
      if (engine.rank() == 0 && total != expected) FAIL("run " << run << ": " << total << " != " << expected);
    }
  });
}

TEST_CASE("buffers can be bound anew between runs") {
  transport::run_local(2, [&](std::shared_ptr<transport::Transport> transport) {
    Engine engine(transport);
    Executable exchange = engine.compile(even_exchange());
    std::vector<double> a1(2), a2(2), b(2, engine.rank() + 1.0);
    exchange.bind("B", b);
    exchange.bind("A", a1);
    exchange.run();
    exchange.bind("A", a2);
    exchange.run();
    if (engine.rank() == 0 && (a1 != std::vector<double>{1, 2} || a2 != a1)) FAIL("rebound memory differs");
  });
}

TEST_CASE("a varying parameter takes part in values with its newest value") {
  const Plan scale = Plan::parse(
      R"({"kplan": 1, "name": "scale", "parameters": {"alpha": {"type": "f64", "time": "varying", "default": 1}},
    "buffers": {"a": {"type": "f64", "shape": [4]}, "b": {"type": "f64", "shape": [4]}},
    "statements": [{"communicate": "a[k]@(rank + 1) % size <<= alpha * b[k] + k@rank where k in {0 ... 3}"}]})");
  transport::run_local(3, [&](std::shared_ptr<transport::Transport> transport) {
    Engine engine(transport);
    Executable e = engine.compile(scale);
    std::vector<double> a(4), b(4, 2.0);
    e.bind("a", a);
    e.bind("b", b);
    for (const double alpha : {1.0, 0.5, -3.0}) {
      e.set("alpha", alpha);
      e.run();
      for (std::size_t k = 0; k < 4; ++k)
        if (a[k] != alpha * 2.0 + static_cast<double>(k)) FAIL("alpha " << alpha);
    }
  });
}

TEST_CASE("several executables are in flight at once and end in any order") {
  transport::run_local(3, [&](std::shared_ptr<transport::Transport> transport) {
    Engine engine(transport);
    std::vector<Executable> all;
    std::vector<std::vector<double>> a(8, std::vector<double>(3)), b(8, std::vector<double>(3));
    for (std::size_t k = 0; k < 8; ++k) {
      all.push_back(engine.compile(even_exchange()));
      for (double& v : b[k]) v = 100.0 * static_cast<double>(k) + engine.rank();
      all[k].bind("A", a[k]);
      all[k].bind("B", b[k]);
    }
    for (auto& e : all) e.start();
    for (std::size_t k = 8; k-- > 0;) all[k].wait();
    for (std::size_t k = 0; k < 8; ++k)
      for (std::size_t j = 0; j < 3; ++j)
        if (engine.rank() % 2 == 0 && a[k][j] != 100.0 * static_cast<double>(k) + static_cast<double>(j))
          FAIL("executable " << k);
  });
}

TEST_CASE("ranks that compile different plans all get the error") {
  const Plan other = Plan::parse(
      R"({"kplan": 1, "name": "other", "buffers": {"A": {"type": "f64", "shape": [1]}}, "statements": [{"communicate": "A@0 <<= A@1"}]})");
  const auto messages =
      messages_on<PlanError>(3, [&](Engine& engine) { engine.compile(engine.rank() == 2 ? other : even_exchange()); });
  for (const auto& m : messages)
    CHECK_THAT(m, Catch::Contains("the ranks compile different plans") && Catch::Contains("on rank 2 [KP-A001]"));
}

TEST_CASE("a uniform value that differs is an error on every rank that says which one differs where") {
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "p", "parameters": {"n": "i64"}, "buffers": {"A": {"type": "f64", "shape": ["n"]}},
    "statements": [{"communicate": "A[0]@0 <<= A[0]@size - 1"}]})");
  const auto messages = messages_on<PlanError>(3, [&](Engine& engine) {
    engine.compile(plan, {{"n", engine.rank() == 1 ? 5 : 4}});
  });
  for (const auto& m : messages)
    CHECK(m == "uniform parameter `n` differs between ranks: 4 on rank 0, 5 on rank 1 [KP-A002]");
}

TEST_CASE("a mistake on one rank is an error on all") {
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "p", "parameters": {"n": {"type": "i64", "scope": "private"}}, "buffers": {"A": {"type": "f64", "shape": ["n"]}},
    "statements": [{"communicate": "A[3]@(rank + 1) % size <<= A[0]@rank"}]})");
  const auto messages = messages_on<PlanError>(3, [&](Engine& engine) {
    engine.compile(plan, {{"n", engine.rank() == 1 ? 2 : 4}});
  });
  for (std::size_t r = 0; r < 3; ++r) {
    CHECK_THAT(messages[r], Catch::Contains("outside") && Catch::Contains("[KP-P052]"));
    if (r != 1) CHECK_THAT(messages[r], Catch::StartsWith("rank 1: "));
  }
}

TEST_CASE("a wrong claim of corresponding knowledge is an error that says who disagrees about what") {
  const Plan plan =
      Plan::parse(R"({"kplan": 1, "name": "p", "parameters": {"stride": {"type": "i64", "scope": "private"}},
    "buffers": {"A": {"type": "f64", "shape": [12]}, "B": {"type": "f64", "shape": [12]}},
    "statements": [{"name": "s", "knowledge": "corresponding", "communicate": "A[k]@(rank + 1) % size <<= B[k]@rank where k in {0 ... 10}, k % stride == 0"}]})");
  SECTION("right") {
    transport::run_local(2, [&](std::shared_ptr<transport::Transport> transport) {
      Engine engine(transport);
      Executable e = engine.compile(plan, {{"stride", 3}});
      std::vector<double> a(12, -1), b(12);
      std::iota(b.begin(), b.end(), 0.0);
      e.bind("A", a);
      e.bind("B", b);
      e.run();
      for (std::size_t k = 0; k < 12; ++k)
        if (a[k] != (k % 3 == 0 ? static_cast<double>(k) : -1)) FAIL("element " << k);
    });
  }
  SECTION("counts differ") {
    const auto messages = messages_on<PlanError>(2, [&](Engine& engine) {
      engine.compile(plan, {{"stride", engine.rank() + 2}});
    });
    for (const auto& m : messages)
      CHECK_THAT(m,
                 Catch::Contains("rank 0 sends 6 elements to rank 1, which expects 4") && Catch::Contains("[KP-A003]"));
  }
  SECTION("counts agree, environments do not") {
    const auto messages = messages_on<PlanError>(2, [&](Engine& engine) {
      engine.compile(plan, {{"stride", engine.rank() == 0 ? 6 : 7}});
    });
    for (const auto& m : messages)
      CHECK_THAT(m, Catch::Contains(
                        "disagree about the where-bound values, or the lengths of the slices, of the 2 elements") &&
                        Catch::Contains("[KP-A003]"));
  }
}

TEST_CASE("claims of millions of elements are compared, too") {
  const Plan plan =
      Plan::parse(R"({"kplan": 1, "name": "p", "parameters": {"shift": {"type": "i64", "scope": "private"}},
    "buffers": {"A": {"type": "i8", "shape": [6000000]}, "B": {"type": "i8", "shape": [6000000]}},
    "statements": [{"name": "s", "knowledge": "corresponding",
                    "communicate": "A[k]@(rank + 1) % size <<= B[k]@rank where k in {shift ... shift + 4999999}"}]})");
  const auto messages = messages_on<PlanError>(2, [&](Engine& engine) {
    engine.compile(plan, {{"shift", 7}});
    engine.compile(plan, {{"shift", engine.rank()}});
  });
  for (const auto& m : messages)
    CHECK_THAT(m, Catch::Contains("of the 5000000 elements") && Catch::Contains("[KP-A003]"));
}

TEST_CASE("a zero divisor in a value is an error after the run, and the engine goes on") {
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "p", "buffers": {"A": {"type": "i32", "shape": [4]}, "B": {"type": "i32", "shape": [4]}},
    "statements": [{"name": "s", "communicate": "A[k]@(rank + 1) % size <<= 12 / B[k]@rank where k in {0 ... 3}"}]})");
  transport::run_local(2, [&](std::shared_ptr<transport::Transport> transport) {
    Engine engine(transport);
    Executable e = engine.compile(plan);
    std::vector<std::int32_t> a(4), b(4, 3);
    if (engine.rank() == 1) b[2] = 0;
    e.bind("A", a);
    e.bind("B", b);
    std::string message;
    try {
      e.run();
    } catch (const RunError& error) {
      message = error.what();
    }
    const std::string expected =
        engine.rank() == 1 ? "plan p, statement s: a divisor is zero in a value on rank 1, run 0 when k = 2 [KP-R001]"
                           : "";
    if (message != expected) FAIL(message);
    b[2] = 4;
    e.run();
    if (engine.rank() == 0 && a != std::vector<std::int32_t>{4, 4, 3, 4}) FAIL("the run after the error");
  });
}

TEST_CASE("bindings are checked: names, types, sizes, overlap, completeness") {
  transport::run_local(1, [&](std::shared_ptr<transport::Transport> transport) {
    Engine engine(transport);
    Executable e = engine.compile(Plan::parse(
        R"({"kplan": 1, "name": "p", "buffers": {"A": {"type": "f64", "shape": [4]}, "B": {"type": "f64", "shape": [4]}},
      "statements": [{"communicate": "A@0 <<= B@0"}]})"));
    std::vector<double> memory(8);
    std::vector<float> floats(4);
    CHECK_THROWS_WITH(e.bind("Aa", memory), Catch::Contains("did you mean `A`?") && Catch::Contains("[KP-B020]"));
    CHECK_THROWS_WITH(e.bind("A", floats), Catch::Contains("holds f64, and memory of f32 was given [KP-B025]"));
    CHECK_THROWS_WITH(e.bind("A", memory), Catch::Contains("32 bytes; memory of 64 bytes was given [KP-B022]"));
    CHECK_THROWS_WITH(e.run(), Catch::Contains("is not bound on rank 0") && Catch::Contains("[KP-B021]"));
    e.bind("A", std::span(memory).subspan(0, 4));
    e.bind("B", std::span(memory).subspan(2, 4));
    CHECK_THROWS_WITH(e.run(), Catch::Contains("overlaps") && Catch::Contains("[KP-B024]"));
    e.bind("B", std::span(memory).subspan(4, 4));
    e.start();
    CHECK_THROWS_WITH(e.start(), Catch::Contains("[KP-R010]"));
    CHECK_THROWS_WITH(e.bind("B", std::span(memory).subspan(4, 4)), Catch::Contains("[KP-B023]"));
    e.wait();
  });
}

TEST_CASE("a rank that ends early is an error on those that wait for it, at once") {
  const auto begin = std::chrono::steady_clock::now();
  std::string message;
  transport::run_local(2, [&](std::shared_ptr<transport::Transport> transport) {
    Engine engine(transport);
    Executable e =
        engine.compile(Plan::parse(R"({"kplan": 1, "name": "p", "buffers": {"A": {"type": "f64", "shape": [4]}},
      "statements": [{"name": "s", "communicate": "A@0 <<= A@1"}]})"));
    std::vector<double> a(4);
    e.bind("A", a);
    if (engine.rank() == 1) return;
    try {
      e.run();
    } catch (const TransportError& error) {
      message = error.what();
    }
  });
  CHECK_THAT(message,
             Catch::Contains(
                 "plan p, statement s: rank 0 waits for 32 bytes from rank 1; rank 1 has ended in run 0 [KP-T002]"));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
}

TEST_CASE("values are numbers and arrays, nothing that turns into one by chance") {
  STATIC_REQUIRE_FALSE(std::is_constructible_v<Value, const char*>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<Value, double*>);
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "p", "parameters": {"large": "u64", "small": "i64"}, "buffers": {"a": {"type": "u64", "shape": [1]}},
    "statements": [{"communicate": "a[0]@rank <<= large@rank"}]})");
  const std::uint64_t large = UINT64_MAX - 255;
  transport::run_local(1, [&](std::shared_ptr<transport::Transport> transport) {
    Engine engine(transport);
    Executable e = engine.compile(plan, {{"large", large}, {"small", 1}});
    std::uint64_t a = 0;
    e.bind("a", a);
    e.run();
    CHECK(a == large);
    CHECK_THROWS_WITH(engine.compile(plan, {{"large", 1}, {"small", large}}),
                      Catch::Contains("18446744073709551360 was given for `small`, which is i64"));
  });
}

TEST_CASE("a value that only rounds to infinity in the type of its parameter is refused; infinity is not") {
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "p", "parameters": {"x": {"type": "f32", "time": "varying"}, "z": {"type": "c64", "default": 0}},
    "buffers": {"a": {"type": "f32", "shape": [1]}}, "statements": [{"communicate": "a[0]@rank <<= x@rank"}]})");
  transport::run_local(1, [&](std::shared_ptr<transport::Transport> transport) {
    Engine engine(transport);
    CHECK_THROWS_WITH(engine.compile(plan, {{"x", 1e39}}), Catch::Contains("1e+39 was given for `x`, which is f32"));
    CHECK_THROWS_WITH(engine.compile(plan, {{"x", 1}, {"z", std::complex<double>(0, -1e39)}}),
                      Catch::Contains("was given for `z`, which is c64"));
    Executable e = engine.compile(plan, {{"x", 3.4e38}});
    float a = 0;
    e.bind("a", a);
    for (const double x : {3.4e38, -3.4e38, 1e-60, static_cast<double>(INFINITY)}) {
      e.set("x", x);
      e.run();
      CHECK(a == static_cast<float>(x));
    }
    CHECK_THROWS_WITH(e.set("x", -1e39), Catch::Contains("which is f32"));
  });
}

TEST_CASE("buffers that are only read are bound to constant memory, and any array will do") {
  transport::run_local(1, [](std::shared_ptr<transport::Transport> transport) {
    Engine engine(transport);
    Executable e = engine.compile(Plan::parse(
        R"({"kplan": 1, "name": "p", "buffers": {"a": {"type": "f64", "shape": [3]}, "b": {"type": "f64", "shape": [3]}},
    "statements": [{"name": "copy", "communicate": "a@rank <<= b@rank"}]})"));
    const std::vector<double> b{1, 2, 3};
    std::array<double, 3> a{};
    e.bind("a", a);
    e.bind("b", b);
    e.run();
    CHECK(a == std::array<double, 3>{1, 2, 3});
    double plain[3] = {4, 5, 6};
    e.bind("b", plain);
    e.run();
    CHECK(a[2] == 6);
    e.bind("b", std::span<const double>(b));
    e.run();
    CHECK(a[2] == 3);
    CHECK_THROWS_WITH(e.bind("a", b), Catch::Contains("written by statement copy") && Catch::Contains("KP-B028"));
  });
}

TEST_CASE("a set that is an empty buffer has no values") {
  for (const char* time : {"fixed", "varying"})
    transport::run_local(2, [&](std::shared_ptr<transport::Transport> transport) {
      Engine engine(transport);
      const std::string text =
          std::string(
              R"({"kplan": 1, "name": "p", "parameters": {"m": {"type": "i64", "scope": "private"}}, "buffers": {"a": {"type": "f64", "shape": [4]},
    "b": {"type": "f64", "shape": ["size", 4]}, "who": {"type": "i32", "shape": ["m"], "time": ")") +
          time + R"("}}, "statements": [{"communicate": "b[me, p]@p <<= a[p]@me where me = rank, p in who"}]})";
      const std::vector<std::int32_t> who(static_cast<std::size_t>(engine.rank()), 0);  // of rank 0: nobody
      Values values{{"m", engine.rank()}};
      if (std::string(time) == "fixed") values.emplace_back("who", who);
      Executable e = engine.compile(Plan::parse(text), values);
      std::vector<double> a(4, 7.0 + engine.rank()), b(8);
      e.bind("a", a);
      e.bind("b", b);
      if (std::string(time) == "varying") e.bind("who", who);
      e.run();
      if (b[4] != (engine.rank() == 0 ? 8.0 : 0.0)) FAIL("rank " << engine.rank() << ": " << b[4]);
    });
}

TEST_CASE("an engine needs a transport") { CHECK_THROWS_WITH(Engine(nullptr), Catch::Contains("KP-E009")); }

TEST_CASE("real numbers become integers alike in code and out of it, whatever they are") {
  std::vector<double> numbers{0.0,        0.5,    1.9,     127.5,  128,          255.9,      256,          32767.9,
                              32768,      32769,  65535.5, 65536,  2147483647.5, 2147483648, 2147483649.5, 4294967295.5,
                              4294967296, 9.3e18, 1.9e19,  1e-310, 1e30,         HUGE_VAL,   std::nan("")};
  for (const double x : std::vector(numbers)) numbers.push_back(-x);
  while (numbers.size() < 200) numbers.push_back(numbers[numbers.size() - 46] + 1);  // vectors and what is left of them
  const auto check = [&](auto from, const std::string& from_name, auto to, Scalar type) {
    using From = decltype(from);
    using To = decltype(to);
    const std::string name(name_of(type));
    PlanBuilder builder("cast");
    builder.parameter("n", Scalar::i64).buffer("x", sizeof(From) == 8 ? Scalar::f64 : Scalar::f32, {"n"});
    builder.buffer("y", type, {"n"}).communicate("cast", "y[k]@rank <<= " + name + "(x[k])@rank where k in range(n)");
    std::vector<From> x;
    for (const double v : numbers) x.push_back(static_cast<From>(v));
    std::vector<To> y(x.size());
    transport::run_local(1, [&](std::shared_ptr<transport::Transport> transport) {
      Engine engine(transport);
      Executable e = engine.compile(builder.build(), {{"n", x.size()}}, Code::before_return);
      e.bind("x", x);
      e.bind("y", y);
      e.run();
    });
    for (std::size_t k = 0; k < x.size(); ++k) {
      INFO(from_name << " " << x[k] << " to " << name);
      const ScalarValue expected = convert(ScalarValue::real(static_cast<double>(x[k])), type);
      To value{};
      std::memcpy(&value, expected.bits, sizeof value);
      CHECK(y[k] == value);
    }
  };
  const auto check_all = [&](auto from, const std::string& name) {
    check(from, name, std::int8_t{}, Scalar::i8);
    check(from, name, std::uint8_t{}, Scalar::u8);
    check(from, name, std::int16_t{}, Scalar::i16);
    check(from, name, std::uint16_t{}, Scalar::u16);
    check(from, name, std::int32_t{}, Scalar::i32);
    check(from, name, std::uint32_t{}, Scalar::u32);
    check(from, name, std::int64_t{}, Scalar::i64);
    check(from, name, std::uint64_t{}, Scalar::u64);
  };
  check_all(double{}, "f64");
  check_all(float{}, "f32");
}
