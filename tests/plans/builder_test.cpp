// Plans made by the builder: the same as JSON makes, and what they are told when they are wrong.
#include <catch2/catch.hpp>
#include <complex>
#include <cstdint>
#include <limits>

#include "kplan/plan.hpp"
#include "plans/model.hpp"

namespace kplan::test {
namespace {

template <class F>
std::string builder_code(F make) {
  try {
    PlanBuilder builder("wrong");
    builder.buffer("A", Scalar::f64, {4});
    make(builder);
    builder.build();
  } catch (const PlanError& e) {
    return e.code();
  }
  return "";
}

}  // namespace

TEST_CASE("the builder makes the plan that the document says", "[plans][builder]") {
  SECTION("a text") {
    PlanBuilder b("even-exchange");
    b.parameter("n", Scalar::i64).buffer("A", Scalar::f64, {"n"}).buffer("B", Scalar::f32, {"n"});
    b.communicate("exchange", "A[j]@i <<= B[i]@j where i in world, j in world, i % 2 == 0");
    CHECK(b.build().digest() == Plan::parse(R"({"kplan": 1, "name": "even-exchange", "parameters": {"n": "i64"},
      "buffers": {"A": {"type": "f64", "shape": ["n"]}, "B": {"type": "f32", "shape": ["n"]}},
      "statements": [{"name": "exchange", "in": "world", "communicate": "A[j]@i <<= B[i]@j where i in world, j in world, i % 2 == 0"}]})")
                                    .digest());
  }
  SECTION("statements piece by piece, with a group, pull, fresh, any order, knowledge") {
    PlanBuilder b("pieces");
    b.buffer("x", Scalar::f64, {"size", 3})
        .index_buffer("owner", Scalar::i32, {4}, Scope::private_, Time::fixed)
        .index_buffer("count", "u16", {1}, Scope::uniform, Time::varying);
    b.group("row", "rank / 2", "-rank").group("all", 0);
    b.statement("gather")
        .assign("x[k, 0]", "rank", "x[k, 1]", "o")
        .in({"k"}, "range(4)")
        .let("o", "owner[k]")
        .where("o != rank")
        .group("row")
        .pull()
        .knowledge("receiver");
    b.statement("total")
        .reduce("x[0, 0]", 0, "sum", "x[i, j]", "s")
        .in({"s"}, "world")
        .in({"i", "j"}, "{0 ... 2}")
        .fresh()
        .any_order();
    CHECK(b.build().digest() == Plan::parse(R"({"kplan": 1, "name": "pieces",
      "buffers": {"x": {"type": "f64", "shape": ["size", 3]}, "owner": {"type": "i32", "shape": [4], "scope": "private", "time": "fixed"}, "count": {"type": "u16", "shape": [1], "scope": "uniform", "time": "varying"}},
      "groups": {"row": {"color": "rank / 2", "key": "-rank"}, "all": {"color": 0}},
      "statements": [
        {"name": "gather", "in": "row", "direction": "pull", "knowledge": "receiver", "communicate": "x[k, 0]@rank <<= x[k, 1]@o where k in range(4), o = owner[k], o != rank"},
        {"name": "total", "fresh": true, "order": "any", "communicate": "x[0, 0]@0 << sum << x[i, j]@s where s in world, i, j in {0 ... 2}"}]})")
                                    .digest());
  }
  SECTION("records, strides, operators and defaults") {
    PlanBuilder b("records");
    const ElementType pair = record_of({{"value", Scalar::f64}, {"index", Scalar::i32}});
    b.type("pair", pair);
    b.parameter_with_default("n", Scalar::i64, 4)
        .parameter_with_default("h", Scalar::f32, 0.5, Scope::private_, Time::varying)
        .parameter_with_default("on", Scalar::boolean, 1)
        .parameter_with_default("off", Scalar::boolean, false)
        .parameter_with_default("odd", Scalar::i64, (std::int64_t{1} << 53) + 1)
        .parameter_with_default("large", Scalar::u64, std::uint64_t{INT64_MAX})
        .parameter_with_default("w", Scalar::c128, std::complex<double>(1, -2.5));
    b.buffer("P", "pair", {"n"}).buffer("Q", pair, {"n"}).strided_buffer("S", Scalar::f64, {"n", 2}, {1, "n"});
    b.index_buffer("T", Scalar::i32, {"n", 2}, Scope::uniform, Time::fixed, {1, "n"});
    b.operation("best", "left.value < right.value ? right : left");
    b.communicate("best", "P[0]@0 << best << Q[0]@s where s in world, on");
    CHECK(b.build().digest() == Plan::parse(R"({"kplan": 1, "name": "records",
      "types": {"pair": {"fields": [{"name": "value", "type": "f64", "offset": 0}, {"name": "index", "type": "i32", "offset": 8}], "size": 16}},
      "parameters": {"n": {"type": "i64", "default": 4}, "h": {"type": "f32", "scope": "private", "time": "varying", "default": 0.5}, "on": {"type": "bool", "default": true}, "off": {"type": "bool", "default": false},
                     "odd": {"type": "i64", "default": 9007199254740993}, "large": {"type": "u64", "default": 9223372036854775807}, "w": {"type": "c128", "default": [1, -2.5]}},
      "buffers": {"P": {"type": "pair", "shape": ["n"]}, "Q": {"type": {"fields": [{"name": "value", "type": "f64", "offset": 0}, {"name": "index", "type": "i32", "offset": 8}], "size": 16}, "shape": ["n"]},
                  "S": {"type": "f64", "shape": ["n", 2], "strides": [1, "n"]},
                  "T": {"type": "i32", "shape": ["n", 2], "strides": [1, "n"], "scope": "uniform", "time": "fixed"}},
      "operators": {"best": {"expression": "left.value < right.value ? right : left"}},
      "statements": [{"name": "best", "communicate": "P[0]@0 << best << Q[0]@s where s in world, on"}]})")
                                    .digest());
  }
  SECTION("operators by field, and C++ functions") {
    PlanBuilder b("operators");
    b.type("pair", record_of({{"value", Scalar::f64}, {"index", Scalar::i32}})).buffer("P", "pair", {4});
    b.record_operation("both", {{"value", "left.value + right.value"}, {"index", "right.index"}},
                       {.is_commutative = false});
    b.native_operation("mine", {.is_associative = false, .is_commutative = false});
    b.communicate("sums", "P[0]@0 << both << P[1]@s, P[2]@0 << mine << P[3]@s where s in world");
    CHECK(b.build().digest() == Plan::parse(R"({"kplan": 1, "name": "operators",
      "types": {"pair": {"fields": [{"name": "value", "type": "f64", "offset": 0}, {"name": "index", "type": "i32", "offset": 8}], "size": 16}},
      "buffers": {"P": {"type": "pair", "shape": [4]}},
      "operators": {"both": {"expression": {"value": "left.value + right.value", "index": "right.index"}, "commutative": false},
                    "mine": {"native": true, "associative": false, "commutative": false}},
      "statements": [{"name": "sums", "communicate": "P[0]@0 << both << P[1]@s, P[2]@0 << mine << P[3]@s where s in world"}]})")
                                    .digest());
  }
}

TEST_CASE("what the builder makes can be printed and read, or is refused", "[plans][builder]") {
  const auto copy_to = [](PlanBuilder& b) { b.communicate("copy", "A@0 <<= A@1"); };
  CHECK(builder_code(copy_to).empty());
  CHECK(builder_code([&](PlanBuilder& b) {
          copy_to(b), b.parameter_with_default("p", Scalar::f64, std::numeric_limits<double>::quiet_NaN());
        }) == "KP-P045");
  CHECK(builder_code([&](PlanBuilder& b) {
          copy_to(b), b.parameter_with_default("p", Scalar::f64, -std::numeric_limits<double>::infinity());
        }) == "KP-P045");
  CHECK(builder_code([&](PlanBuilder& b) { copy_to(b), b.parameter_with_default("p", Scalar::u64, 0x1p63); }) ==
        "KP-P045");  // not 2^63 - 1
  CHECK(builder_code([&](PlanBuilder& b) {
          copy_to(b), b.parameter_with_default("p", Scalar::u64, std::uint64_t{1} << 63);
        }) == "KP-P045");  // JSON has no such integer
  CHECK(builder_code([&](PlanBuilder& b) { copy_to(b), b.parameter_with_default("p", Scalar::i32, 1.5); }) ==
        "KP-P045");
  CHECK(builder_code([&](PlanBuilder& b) { b.communicate("caf\xe9", "A@0 <<= A@1"); }) == "KP-P041");
  CHECK(builder_code([&](PlanBuilder& b) { b.communicate(std::string(201, 'x'), "A@0 <<= A@1"); }) == "KP-P041");
  CHECK(builder_code([&](PlanBuilder& b) { copy_to(b), b.buffer("not a name", Scalar::f64, {1}); }) == "KP-P041");
  ElementType around_zero = record_of({{"first", Scalar::f64}});
  around_zero.fields[0].offset_bytes = SIZE_MAX - 3;
  CHECK(builder_code([&](PlanBuilder& b) { copy_to(b), b.type("around_zero", around_zero); }) == "KP-P044");
  CHECK(builder_code([](PlanBuilder&) {}) == "KP-J013");
  CHECK(builder_code([](PlanBuilder& b) { b.statement("empty"); }) == "KP-J013");
  CHECK(builder_code([](PlanBuilder& b) { b.statement("s").assign("A[", 0, "A", 1); }) == "KP-S018");
  CHECK_THROWS_AS(PlanBuilder("").build(), PlanError);
}

TEST_CASE("a builder can go on being used after build()", "[plans][builder]") {
  PlanBuilder b("growing");
  b.buffer("A", Scalar::f64, {4});
  StatementBuilder s = b.statement("one").assign("A", 0, "A", 1);
  const Plan first = b.build();
  s.where("true");
  b.communicate("two", "A@1 <<= A@0");
  CHECK(first.model().statements.size() == 1);
  CHECK(b.build().model().statements.size() == 2);
  CHECK(b.build().model().statements[0].clauses.size() == 1);
}

TEST_CASE("clauses and reductions added to a statement's text stand behind its own", "[plans][builder]") {
  PlanBuilder b("added"), whole("added");
  for (PlanBuilder* builder : {&b, &whole}) builder->buffer("A", Scalar::f64, {8}).buffer("B", Scalar::f64, {8});
  b.communicate("s", "A[k]@r <<= B[k]@0 where k in range(4)")
      .assign("A[k + 4]", "r", "2 * B[k]", 0)
      .in({"r"}, "world")
      .let("odd", "k % 2")
      .where("odd == 1 && rank == 0");
  whole.communicate("s",
                    "A[k]@r <<= B[k]@0, A[k + 4]@r <<= 2 * B[k]@0 where k in range(4), r in world, odd = k % 2, "
                    "odd == 1 && rank == 0");
  CHECK(b.build().digest() == whole.build().digest());
}

TEST_CASE("an error about a plan that was built names the plan and the statement", "[plans][builder]") {
  const auto message = [](const char* text) {
    PlanBuilder b("halo");
    b.buffer("A", Scalar::f64, {4});
    b.communicate("up", text);
    try {
      b.build();
    } catch (const PlanError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(message("A[@0 <<= A@1") ==
        "plan halo /statements/0: an expression is missing: `@` stands here [KP-S018]\n    A[@0 <<= A@1\n      ^");
  CHECK(message("A@0 <<= u@1") ==
        "plan halo /statements/0: `u` is not declared [KP-P005]\n    A@0 <<= u@1\n            ^");
  PlanBuilder empty("halo");
  CHECK_THROWS_WITH(empty.build(), "plan halo /statements: a plan has at least one statement [KP-J013]");
  empty.statement("up");
  CHECK_THROWS_WITH(empty.build(), "plan halo /statements/0: a statement has at least one reduction [KP-J013]");
}

}  // namespace kplan::test

TEST_CASE("shapes are integers of any type") {
  const auto plan = [](auto rows, auto columns) {
    kplan::PlanBuilder builder("p");
    builder.buffer("A", kplan::Scalar::f64, {rows, columns}).buffer("B", kplan::Scalar::f64, {rows, columns});
    builder.communicate("s", "A@0 <<= B@1");
    return builder.build().to_json();
  };
  CHECK(plan(std::size_t{3}, std::uint32_t{4}) == plan(3, "4"));
}
