// Statements of a phase as one: their short messages, the order of senders, native operators, and what errors name.
#include <catch2/catch.hpp>

#include "engine/bind.hpp"
#include "engine/runtime/program.hpp"
#include "random_plan.hpp"
#include "tests/engine/on_ranks.hpp"
#include "tests/variable.hpp"

using namespace kplan;
using tests::claim;
using tests::on_ranks;

namespace {

/// A copy, a sum that converts, an operator of the program's own, and a message that is too long to go with them.
const std::string joined_plan = R"json({"kplan": 1, "name": "joined", "buffers": {
    "a": {"type": "f64", "shape": [5]}, "b": {"type": "f64", "shape": [5]}, "c": {"type": "f64", "shape": [7]}, "d": {"type": "i16", "shape": [7]},
    "e": {"type": "f64", "shape": [9]}, "f": {"type": "f32", "shape": [9]}, "g": {"type": "f64", "shape": [4000]}, "h": {"type": "f64", "shape": [4000]}},
    "operators": {"mine": {"native": true}},
    "statements": [
      {"name": "copies", "communicate": "a[k]@1 - rank <<= b[4 - k]@rank where k in range(5)"},
      {"name": "converts", "communicate": "c[k]@1 - rank << sum << d[k]@rank where k in range(0, 7, 2)"},
      {"name": "own", "communicate": "e[k]@1 - rank << mine << f[k]@rank where k in range(9)"},
      {"name": "long", "communicate": "g[k]@1 - rank <<= h[k]@rank where k in range(4000)"}]})json";

struct Arrays {
  std::vector<double> a = std::vector<double>(5), b = a, c = std::vector<double>(7), e = std::vector<double>(9),
                      g = std::vector<double>(4000), h = g;
  std::vector<std::int16_t> d = std::vector<std::int16_t>(7);
  std::vector<float> f = std::vector<float>(9);

  explicit Arrays(Executable& x) {
    x.bind("a", a);
    x.bind("b", b);
    x.bind("c", c);
    x.bind("d", d);
    x.bind("e", e);
    x.bind("f", f);
    x.bind("g", g);
    x.bind("h", h);
  }
};

void twice_and_more(void* places, const void* values, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k)
    static_cast<double*>(places)[k] = 2 * static_cast<double*>(places)[k] + static_cast<const double*>(values)[k];
}

}  // namespace

TEST_CASE("short messages of statements that run together go as one, and long ones by themselves") {
  const auto plan = std::make_shared<const Plan>(Plan::parse(joined_plan));
  transport::run_local(2, [&](const std::shared_ptr<transport::Transport>& transport) {
    for (const bool has_common_phases : {true, false}) {
      BoundPlan bound = bind_values({plan, &plan->model()}, {}, transport->rank(), 2).bound;
      Schedule schedule = build_schedule(bound);
      schedule.has_common_phases = has_common_phases;
      NativeOperators operators;
      operators["mine"] = std::make_shared<const NativeOperator>(twice_and_more);
      Program program = make_program(std::move(bound), std::move(schedule), operators, jit::Wait::not_at_all);
      open_channels(program, {}, *transport, transport::Clock::now() + std::chrono::minutes(1));
      const StatementProgram& all = program.statements[0];
      if (!has_common_phases) {
        claim(program.phases == std::vector<std::vector<int>>{{0, 1, 2, 3}} && all.outgoing.size() == 1,
              "statements are one, though other ranks may have other phases");
        continue;
      }
      claim(program.phases == std::vector<std::vector<int>>{{0}}, "the statements are not one");
      claim(all.outgoing.size() == 2 && all.incoming.size() == 2, "what is sent and received");
      claim(all.outgoing[0].is_of_several && !all.outgoing[1].is_of_several, "the wrong one is of several");
      claim(all.outgoing[0].bytes == 48 + 16 + 9 * 4, "it is as long as its parts");
    }
  });
}

TEST_CASE("parts of a message of several statements go each to their places, run after run") {
  const Plan plan = Plan::parse(joined_plan);
  on_ranks(2, [&](Engine& engine) {
    engine.register_operator("mine", twice_and_more);
    Executable x = engine.compile(plan);
    Arrays arrays(x);
    auto& [a, b, c, e, g, h, d, f] = arrays;
    double sum = 0, own = 0;
    for (int run = 0; run < 20; ++run) {
      const int mine = 100 * run + engine.rank(), theirs = 100 * run + 1 - engine.rank();
      for (std::size_t k = 0; k < h.size(); ++k) h[k] = mine + static_cast<double>(k);
      for (std::size_t k = 0; k < b.size(); ++k) b[k] = mine - static_cast<double>(k);
      for (std::size_t k = 0; k < d.size(); ++k) d[k] = static_cast<std::int16_t>(mine * (k == 2 ? -1 : 1));
      for (std::size_t k = 0; k < f.size(); ++k) f[k] = static_cast<float>(mine) + static_cast<float>(k) / 4;
      x.run();
      sum -= theirs;
      own = 2 * own + theirs + 0.75;
      claim(a[1] == theirs - 3, "what is copied");
      claim(c[2] == sum && c[6] == -sum && c[1] == 0, "what is added");
      claim(e[3] == own, "what the program's own operator makes");
      claim(g[3999] == theirs + 3999, "what is long");
    }
  });
}

TEST_CASE("statements that are one apply what comes in the order of senders, each by its own group's numbers") {
  using namespace kplan::test;
  // Sums of what is rounded hang on the order.
  RandomPlan plan;
  plan.ranks = 5;
  plan.data_seed = 11;
  for (const char* name : {"A", "B", "C", "D", "E", "F"})
    plan.buffers.push_back({name, "f32", {400}, {}, "", false, false});
  const auto add = [&](const std::string& group, const std::string& to, const std::string& receiver,
                       const std::string& from, const std::string& sender, std::vector<std::string> clauses) {
    RandomStatement s;
    s.group = group;
    s.reductions = {{to, receiver, "sum", from, sender}};
    s.clauses = std::move(clauses);
    plan.statements.push_back(s);
  };
  add("", "A[k % 3]", "0", "B[k] * 3.3", "i", {"i in world", "k in range(8)"});
  add("", "C[k]", "i * 2 % size", "D[k]", "i", {"i in world", "k in range(350)"});
  add("half", "E[0]", "0", "F[k] / 7.7", "j", {"j in half", "k in range(5)"});
  add("half", "F[399]", "size - 1", "B[k]", "j", {"j in half", "k in range(5)"});
  const Outcome outcome = compare_with_reference(plan, 4);
  INFO(plan.to_json() << "\n" << outcome.what);
  CHECK(outcome.kind == Outcome::Kind::identical);
}

TEST_CASE("a rank that waits for a message of several statements names them all") {
  std::string error;
  on_ranks(2, [&](Engine& engine) {
    engine.register_operator("mine", twice_and_more);
    Executable x = engine.compile(Plan::parse(joined_plan));
    Arrays arrays(x);
    if (engine.rank() == 1) return;
    error = tests::error_of([&] { x.run(); });
  });
  CHECK_THAT(error, Catch::Contains("statements copies, converts, own, long: rank 0 waits for 100 bytes from rank 1"));
}

namespace {

/// One f64 buffer each, of 40,000 elements.
test::RandomPlan plan_with(int ranks, const std::vector<std::string>& buffers) {
  test::RandomPlan out;
  out.ranks = ranks;
  out.data_seed = 5;
  for (const std::string& name : buffers) out.buffers.push_back({name, "f64", {40000}, {}, "", false, false});
  out.buffers.push_back({"t", "i32", {4}, {}, R"("time": "varying")", false, false});
  return out;
}

test::RandomStatement statement(const std::string& to, const std::string& receiver, const std::string& from,
                                const std::string& sender, std::vector<std::string> clauses,
                                const std::string& group = "") {
  test::RandomStatement out;
  out.reductions = {{to, receiver, "assign", from, sender}};
  out.clauses = std::move(clauses);
  out.group = group;
  return out;
}

void is_identical(const test::RandomPlan& plan) {
  const test::Outcome outcome = test::compare_with_reference(plan, 4);
  INFO(plan.to_json() << "\n" << outcome.what);
  CHECK(outcome.kind == test::Outcome::Kind::identical);
}

}  // namespace

TEST_CASE("statements whose ranks have other phases wait for nothing that hangs on what they do later") {
  test::RandomPlan plan = plan_with(2, {"A", "B", "C", "D", "E"});
  plan.statements = {
      statement("E[k]", "0", "D[k]", "1", {"k in range(4)"}),
      statement("B[k]", "rank", "C[at]", "from", {"k in range(4)", "rank == 0", "at = abs(t[k])", "from = 1"}),
      statement("A[k]", "1", "E[k]", "0", {"k in range(4)"})};
  plan.statements[1].is_pull = true;
  is_identical(plan);

  plan = plan_with(2, {"D", "E", "F", "G", "H"});
  plan.statements = {statement("E[0]", "0", "D[0]", "1", {}),
                     statement("G[k]", "1", "H[k]", "0", {"k in range(40000)"}, "turned"),
                     statement("E[k]", "0", "F[k]", "1", {"k in range(40000)"})};
  is_identical(plan);
}

TEST_CASE("messages between two ranks stay in order, whoever else is in a statement's group") {
  test::RandomPlan plan = plan_with(3, {"D", "E", "F", "G", "H", "P"});
  plan.statements = {statement("E[0]", "0", "D[0]", "1", {}, "but_one"),
                     statement("G[k]", "size - 2", "H[k]", "size - 1", {"k in range(40000)"}, "turned"),
                     statement("P[k]", "1", "F[k]", "0", {"k in range(40000)"})};
  is_identical(plan);
}

TEST_CASE("what goes alike to many ranks goes so to all of them") {
  const tests::Variable pieces("KPLAN_PIECE_BYTES", "1000");
  for (const bool is_long_first : {false, true}) {
    test::RandomPlan plan = plan_with(4, {"A", "B", "C", "D", "E", "F"});
    const auto spread = [](const char* to, const char* from, const std::string& n) {
      return statement(std::string(to) + "[k]", "r", std::string(from) + "[" + n + " - 1 - k]", "0",
                       {"r in world", "k in range(" + n + ")"});
    };
    plan.statements = {spread("A", "B", "120"), statement("E[k]", "1", "F[k]", "0", {"k in range(4)"}),
                       spread("C", "D", "400")};
    if (is_long_first) std::swap(plan.statements[0], plan.statements[2]);
    is_identical(plan);
  }
}

TEST_CASE("what must be applied in the order of senders waits for a message of several, whatever lies between them") {
  test::RandomPlan plan = plan_with(3, {"A", "B", "C", "D", "E", "F"});
  for (test::RandomBuffer& b : plan.buffers)
    if (b.name == "C") b.type = "f32";
  plan.statements = {statement("A[k]", "(rank + 1) % size", "B[k]", "rank", {"k in range(4)"}),
                     statement("E[k]", "(rank + 1) % size", "F[at]", "rank", {"k in range(4)", "at = abs(t[k]) % 40"}),
                     statement("C[k % 5]", "1", "f32(D[k] / 3)", "rank", {"k in range(60)"})};
  plan.statements[2].reductions[0].op = "sum";
  is_identical(plan);
}
