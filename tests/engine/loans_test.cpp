// Messages that are read where they lie in the sender's memory. Threads can read any memory of each other's; processes
// are in tests/engine/mpi, with KPLAN_LEND_BYTES.
#include "engine/runtime/loans.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "engine/bind.hpp"
#include "tests/engine/on_ranks.hpp"
#include "tests/engine/two_ranks.hpp"

using namespace kplan;
using tests::holds_on_both;

namespace {

constexpr std::int64_t count = 20000;

/// Two arrays of rank 0 in one message: one converted and added, one of blocks that fall otherwise at the other end.
Plan two_arrays(const std::string& name) {
  return Plan::parse(R"json({"kplan": 1, "name": ")json" + name +
                     R"json(", "parameters": {"n": {"type": "i64"}}, "buffers": {
    "a": {"type": "f64", "shape": ["n"]}, "b": {"type": "f32", "shape": ["n", 2]},
    "c": {"type": "i32", "shape": ["n"]}, "d": {"type": "i32", "shape": ["n / 4", 4]}},
    "statements": [{"communicate": "a[k]@1 << sum << b[k, 1]@0, d[k % (n / 4), k / (n / 4)]@1 <<= c[n - 1 - k]@0 where k in range(n)"}]})json");
}

struct Arrays {
  std::vector<double> a = std::vector<double>(count);
  std::vector<float> b = std::vector<float>(2 * count);
  std::vector<std::int32_t> c = std::vector<std::int32_t>(count), d = std::vector<std::int32_t>(count);
  Arrays() {
    std::iota(b.begin(), b.end(), 1.f);
    std::iota(c.begin(), c.end(), 0);
  }
  bool is_right(int runs) const {
    for (std::size_t k = 0; k < a.size(); ++k) {
      if (a[k] != runs * double{b[2 * k + 1]}) return false;
      if (d[k % (count / 4) * 4 + k / (count / 4)] != c[count - 1 - k]) return false;
    }
    return true;
  }
  void bind_to(Executable& x) {
    x.bind("a", a);
    x.bind_bytes("b", std::as_writable_bytes(std::span(b)), Written::seldom);
    x.bind_bytes("c", std::as_writable_bytes(std::span(c)), Written::seldom);
    x.bind("d", d);
  }
};

Executable compiled(Engine& engine, const char* name, Arrays& arrays) {
  Executable out = engine.compile(two_arrays(name), {{"n", count}});
  arrays.bind_to(out);
  return out;
}

}  // namespace

TEST_CASE("messages that are lent are right whichever way each run goes") {
  CHECK(holds_on_both([](Engine& engine) {
    Arrays arrays;
    Executable x = compiled(engine, "x", arrays);
    tests::run_either_way(x, engine.rank(), 12);
    return engine.rank() == 0 || arrays.is_right(12);
  }));
}

TEST_CASE("a rank's own share is not forgotten where the message that it is unpacked with is lent") {
  tests::on_ranks(3, [](Engine& engine) {
    const Plan plan =
        Plan::parse(R"json({"kplan": 1, "name": "total", "parameters": {"n": {"type": "i64"}}, "buffers": {
      "a": {"type": "f64", "shape": ["n"]}, "b": {"type": "f32", "shape": ["n"]}},
      "statements": [{"communicate": "a@j << sum << b@i where i in world, j in world"}]})json");
    Executable x = engine.compile(plan, {{"n", count}});
    std::vector<double> a(count, 1.);
    std::vector<float> b(count, static_cast<float>(engine.rank() + 1));
    x.bind("a", a);
    x.bind_bytes("b", std::as_writable_bytes(std::span(b)), Written::seldom);
    tests::run_either_way(x, engine.rank(), 12);
    tests::claim(std::ranges::all_of(a, [](double value) { return value == 1 + 12 * (1 + 2 + 3); }), "it is the sum");
  });
}

TEST_CASE("a receiver that waits for something else first does not hold up who lends to it") {
  CHECK(holds_on_both([](Engine& engine) {
    Arrays of_x, of_y;
    Executable x = compiled(engine, "x", of_x), y = compiled(engine, "y", of_y);
    for (int k = 0; k < 5; ++k) {
      if (engine.rank() == 0) {
        x.run();
        y.run();
      } else {
        x.start();
        y.run();
        x.wait();
      }
    }
    return engine.rank() == 0 || (of_x.is_right(5) && of_y.is_right(5));
  }));
}

TEST_CASE("ranks may wait for their plans in different orders though both lend") {
  const Plan plan = Plan::parse(R"json({"kplan": 1, "name": "swap", "parameters": {"n": {"type": "i64"}}, "buffers": {
    "a": {"type": "i64", "shape": ["n"]}, "b": {"type": "i64", "shape": ["n"]}},
    "statements": [{"communicate": "a[k]@(rank + 1) % size <<= b[k]@rank where k in range(n)"}]})json");
  CHECK(holds_on_both([&](Engine& engine) {
    std::vector<SharedArray<std::int64_t>> arrays;
    std::vector<Executable> both;
    for (int k = 0; k < 2; ++k) {
      both.push_back(engine.compile(plan, {{"n", count}}));
      for (const char* name : {"a", "b"}) {
        arrays.push_back(engine.allocate<std::int64_t>(count, Written::seldom));
        both.back().bind(name, arrays.back());
      }
    }
    bool is_right = true;
    for (int round = 0; round < 20; ++round) {
      for (int k = 0; k < 2; ++k) {
        std::iota(arrays[2 * k + 1].begin(), arrays[2 * k + 1].end(), 1000 * round + 100 * k + engine.rank());
        both[k].start();
      }
      both[engine.rank()].wait();
      both[1 - engine.rank()].wait();
      for (int k = 0; k < 2; ++k)
        is_right = is_right && arrays[2 * k][7] == 1000 * round + 100 * k + 1 - engine.rank() + 7;
    }
    return is_right;
  }));
}

TEST_CASE("buffers that are bound anew are read where they lie now") {
  CHECK(holds_on_both([](Engine& engine) {
    Arrays arrays[3];
    Executable x = compiled(engine, "x", arrays[0]);
    bool is_right = true;
    for (int k = 0; k < 9; ++k) {
      std::iota(arrays[k % 3].b.begin(), arrays[k % 3].b.end(), static_cast<float>(k));
      std::ranges::fill(arrays[k % 3].a, 0.0);
      arrays[k % 3].bind_to(x);
      x.run();
      is_right = is_right && (engine.rank() == 0 || arrays[k % 3].is_right(1));
    }
    return is_right;
  }));
}

TEST_CASE("elements are read where they lie though they lie further apart than one list can say") {
  const Plan plan = Plan::parse(R"json({"kplan": 1, "name": "far", "parameters": {"n": "i64",
    "m": {"type": "i64", "scope": "private"}}, "buffers": {
    "a": {"type": "u8", "shape": ["n"]}, "b": {"type": "u8", "shape": ["m"]},
    "at": {"type": "i64", "shape": ["n"], "time": "fixed"}},
    "statements": [{"communicate": "a[k]@1 <<= b[at[k]]@0 where k in range(n)"}]})json");
  constexpr std::int64_t n = 8192, far = std::int64_t{1} << 32, most = far + 4 * n;
  std::vector<std::int64_t> at(n);
  for (std::int64_t k = 0, place = 0; k < n; ++k) at[k] = place += k == n / 2 ? far : 2 + k * k % 7 % 2;
  for (const std::int64_t extent_at_receiver : {std::int64_t{16}, most})
    CHECK(holds_on_both([&](Engine& engine) {
      const bool sends = engine.rank() == 0;
      const auto m = static_cast<std::size_t>(sends ? most : extent_at_receiver);
      // Pages are first there when they are touched.
      void* const memory = mmap(nullptr, m, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) return false;
      const std::span b(static_cast<std::byte*>(memory), m);
      std::vector<std::uint8_t> a(n);
      {
        Executable x = engine.compile(plan, {{"n", n}, {"m", static_cast<std::int64_t>(m)}, {"at", at}});
        x.bind("a", a);
        x.bind_bytes("b", b, Written::seldom);
        for (std::int64_t k = 0; sends && k < n; ++k)
          b[static_cast<std::size_t>(at[k])] = static_cast<std::byte>(k % 251);
        for (int run = 0; run < 3; ++run) x.run();
      }
      munmap(memory, m);
      for (std::int64_t k = 0; !sends && k < n; ++k)
        if (a[static_cast<std::size_t>(k)] != k % 251) return false;
      return true;
    }));
}

TEST_CASE("of a where-bound value it is the buffer that counts whose lines both ends want") {
  const auto plan = std::make_shared<const Plan>(Plan::parse(R"json({"kplan": 1, "name": "p", "buffers": {
    "b": {"type": "i64", "shape": [20000], "scope": "uniform", "time": "fixed"}, "w": {"type": "i64", "shape": [20000]},
    "a": {"type": "i64", "shape": [20000]}}, "statements": [
    {"communicate": "a[k]@1 <<= v@0, w[k]@0 <<= a[k]@1 where k in range(20000), v = b[k]"}]})json"));
  const std::shared_ptr<const PlanModel> model(plan, &plan->model());
  const BoundValues values = bind_values(model, {{"b", std::vector<std::int64_t>(20000)}}, /*rank=*/0, /*size=*/2);
  const BoundPlan& bound = values.bound;
  const Schedule schedule = build_schedule(bound);
  const StatementSchedule& s = schedule.statements[0];
  const WrittenLines written(bound, schedule, schedule.phases[0]);
  CHECK(written.contains(1, 0));  // w, which has the number that v has among the variables
  CHECK(better_lent(model->statements[0], s, s.sends.at(0), written, {2048, 4}) == BetterLent::when_seldom_written);
}

TEST_CASE("an array outlives the engine that allocated it") {
  CHECK(holds_on_both([](Engine& engine) {
    SharedArray<double> array;
    {
      Engine other(transport::local(1)[0]);
      array = other.allocate<double>(1000);
    }
    array[999] = 1;
    return array.size() == 1000 && array[0] == 0 && array[999] == 1 && engine.size() == 2;
  }));
}

TEST_CASE("a failed run leaves nothing lent") {
  transport::run_local(2, [&](std::shared_ptr<transport::Transport> transport) {
    Engine engine(std::move(transport));
    Arrays arrays;
    Executable x = compiled(engine, "x", arrays);
    if (engine.rank() == 1) return;  // ends without a run
    std::string message;
    try {
      for (int k = 0; k < 5; ++k) x.run();
    } catch (const TransportError& error) {
      message = error.what();
    }
    if (message.find("rank 1 has ended") == std::string::npos) throw std::runtime_error("no error: " + message);
  });
}
