#include "jit/row_spec.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "jit/compiler.hpp"
#include "kplan/error.hpp"

using namespace kplan;
using namespace kplan::jit;

namespace {

constexpr RowOperand value(std::int64_t step) { return {RowOperand::Kind::value, step}; }
RowOperand literal(std::int64_t v) { return RowOperand::literal(v); }

/// for i in 0 .. s0: t = list[i], unless it is negative; a row (t, i), and of even i another one (i / s1).
RowSpec spec() {
  RowSpec out;
  out.name = "chosen";
  out.steps = {
      {.opcode = RowOpcode::range, .a = literal(0), .b = RowOperand::scalar(0), .c = literal(1)},
      {.opcode = RowOpcode::offset, .a = literal(0), .b = value(0), .c = literal(4)},
      {.opcode = RowOpcode::load, .type = Scalar::i32, .a = value(1), .array = 0},
      {.opcode = RowOpcode::apply, .operation = Operation::ge, .a = value(2), .b = literal(0)},
      {.opcode = RowOpcode::filter, .a = value(3)},
  };
  out.parts = {{{}, {value(2), value(0)}},
               {{{.opcode = RowOpcode::apply, .operation = Operation::mod, .a = value(0), .b = literal(2)},
                 {.opcode = RowOpcode::apply, .operation = Operation::eq, .a = value(5), .b = literal(0)},
                 {.opcode = RowOpcode::filter, .a = value(6)},
                 {.opcode = RowOpcode::apply, .operation = Operation::div, .a = value(0), .b = RowOperand::scalar(1)}},
                {value(8)}}};
  return out;
}

/// for i in 0 .. s0: a row (i, its turns) of the loop inside; for j in i .. s1: a row (i + j).
RowSpec spec_of_loop() {
  RowSpec out;
  out.name = "turns";
  out.steps = {{.opcode = RowOpcode::range, .a = literal(0), .b = RowOperand::scalar(0), .c = literal(1)},
               {.opcode = RowOpcode::range, .a = value(0), .b = RowOperand::scalar(1), .c = literal(1)},
               {.opcode = RowOpcode::apply, .operation = Operation::add, .a = value(0), .b = value(1)}};
  out.parts = {{{{.opcode = RowOpcode::apply, .operation = Operation::sub, .a = RowOperand::scalar(1), .b = value(0)}},
                {value(0), value(3)},
                /*is_outside=*/true},
               {{}, {value(2)}}};
  return out;
}

struct Call {
  std::vector<std::int64_t> scalars{6, 2}, room{10, 10}, rows{-1, -1};
  std::vector<std::int32_t> list{4, -1, 7, 8, -2, 9};
  std::int64_t most_turns = 100;
  std::vector<std::vector<std::int64_t>> columns{std::vector<std::int64_t>(10), std::vector<std::int64_t>(10),
                                                 std::vector<std::int64_t>(10)};

  RowsOutcome operator()(const RowKernel& kernel) {
    const std::byte* const arrays[] = {reinterpret_cast<const std::byte*>(list.data())};
    std::int64_t* const to[] = {columns[0].data(), columns[1].data(), columns[2].data()};
    const RowArguments arguments{scalars.data(), arrays, to, room.data(), rows.data(), most_turns};
    return kernel.function()(&arguments);
  }
};

}  // namespace

TEST_CASE("rows are written as C") {
  CHECK(spec().to_text() ==
        "chosen:\n"
        "  for (v0 = 0; v0 < s0; v0 += 1)\n"
        "    v1 = 0 + v0 * 4;\n"
        "    v2 = *(i32*)(array0 + v1);\n"
        "    v3 = ge(v2, 0);\n"
        "    if (!v3) continue;\n"
        "    rows0[n0++] = {v2, v0};\n"
        "    v5 = mod(v0, 2);\n"
        "    v6 = eq(v5, 0);\n"
        "    if (!v6) goto end1;\n"
        "    v8 = div(v0, s1);\n"
        "    rows1[n1++] = {v8};\n"
        "    end1:\n");
}

TEST_CASE("rows of loops stand before them") {
  CHECK_NOTHROW(check(spec_of_loop()));
  CHECK(spec_of_loop().to_text() ==
        "turns:\n"
        "  for (v0 = 0; v0 < s0; v0 += 1)\n"
        "    if (v0 < s1)\n"
        "      v3 = sub(s1, v0);\n"
        "      rows0[n0++] = {v0, v3};\n"
        "      for (v1 = v0; v1 < s1; v1 += 1)\n"
        "        v2 = add(v0, v1);\n"
        "        rows1[n1++] = {v2};\n");
  if (!Compiler::instance().is_available()) return;
  const RowSpec specs[] = {spec_of_loop()};
  const RowKernel kernel = Compiler::instance().compile(specs)[0];
  for (const std::int64_t turns : {3, 1}) {
    Call call;
    call.scalars = {6, turns};
    CHECK(call(kernel) == rows_done);
    std::vector<std::int64_t> firsts, counts, sums;
    for (std::int64_t i = 0; i < turns; ++i) {
      firsts.push_back(i), counts.push_back(turns - i);
      for (std::int64_t j = i; j < turns; ++j) sums.push_back(i + j);
    }
    CHECK(call.rows == std::vector<std::int64_t>{std::ssize(firsts), std::ssize(sums)});
    call.columns[0].resize(firsts.size()), call.columns[1].resize(firsts.size()), call.columns[2].resize(sums.size());
    CHECK(call.columns == std::vector{firsts, counts, sums});
  }
  Call call;
  call.scalars = {6, 3};
  call.room = {2, 10};
  CHECK(call(kernel) == rows_out_of_room);
  call.room = {3, 5};
  CHECK(call(kernel) == rows_out_of_room);
  call.room = {3, 6};
  CHECK(call(kernel) == rows_done);
}

TEST_CASE("keys of rows tell specs apart, names aside") {
  RowSpec other = spec();
  other.name = "another";
  CHECK(other.key() == spec().key());
  CHECK(other == spec());
  std::set<std::string> keys{spec().key()};
  const auto differs = [&](const auto& change) {
    RowSpec changed = spec();
    change(changed);
    CHECK_FALSE(changed == spec());
    CHECK(keys.insert(changed.key()).second);
  };
  differs([](RowSpec& s) { s.steps[0].b = literal(6); });
  differs([](RowSpec& s) { s.steps[2].type = Scalar::u32; });
  differs([](RowSpec& s) { s.steps[2].array = 1; });
  differs([](RowSpec& s) { s.steps[3].operation = Operation::gt; });
  differs([](RowSpec& s) { s.steps.pop_back(); });
  differs([](RowSpec& s) { s.parts[0].columns.pop_back(); });
  differs([](RowSpec& s) { s.parts.pop_back(); });
  differs([](RowSpec& s) { s.parts[1].steps[0].b = literal(3); });
  differs([](RowSpec& s) { s.parts[1].is_outside = true; });
}

TEST_CASE("rows that are not well formed are refused") {
  const auto refused = [](const auto& change) {
    RowSpec changed = spec();
    change(changed);
    CHECK_THROWS_AS(check(changed), InternalError);
  };
  CHECK_NOTHROW(check(spec()));
  refused([](RowSpec& s) { s.steps[1].b = value(1); });           // its own value
  refused([](RowSpec& s) { s.parts[0].columns[0] = value(4); });  // a filter's
  refused([](RowSpec& s) { s.parts[0].columns[0] = value(8); });  // a later part's
  refused([](RowSpec& s) { s.parts[1].steps[1].a = value(-1); });
  refused([](RowSpec& s) { s.steps[2].array = -1; });
  refused([](RowSpec& s) { s.steps[2].type = Scalar::f64; });
  refused([](RowSpec& s) { s.steps[3].operation = Operation::sqrt; });
  refused([](RowSpec& s) { s.parts[1].steps[0].opcode = RowOpcode::range; });
  refused([](RowSpec& s) { s.parts.clear(); });
  refused([](RowSpec& s) { s.parts[0].is_outside = true; });  // reads what is in the loop
  refused([](RowSpec& s) {
    s.steps[0] = {.opcode = RowOpcode::apply, .a = literal(1), .b = literal(2)};
    s.parts[0] = {{}, {}, /*is_outside=*/true};  // of no loop
  });
}

TEST_CASE("compiled rows stop at their room, their turns, and at what is not plain") {
  if (!Compiler::instance().is_available()) return;
  const std::vector<RowSpec> specs{spec(), spec()};
  const std::vector<RowKernel> kernels = Compiler::instance().compile(specs);
  REQUIRE(kernels[0].function() != nullptr);
  CHECK(kernels[0].function() == kernels[1].function());
  const RowKernel& kernel = kernels[0];
  {
    Call call;
    CHECK(call(kernel) == rows_done);
    CHECK(call.rows == std::vector<std::int64_t>{4, 2});
    call.columns[0].resize(4), call.columns[1].resize(4), call.columns[2].resize(2);
    CHECK(call.columns == std::vector<std::vector<std::int64_t>>{{4, 7, 8, 9}, {0, 2, 3, 5}, {0, 1}});
  }
  {
    Call call;
    call.room[0] = 3;
    CHECK(call(kernel) == rows_out_of_room);
    CHECK(call.columns[0][3] == 0);
    CHECK(call.rows[0] == -1);
    call.room = {4, 2};
    CHECK(call(kernel) == rows_done);
    call.room[1] = 1;
    CHECK(call(kernel) == rows_out_of_room);
  }
  {
    Call call;
    call.most_turns = 5;
    CHECK(call(kernel) == rows_left);
    call.most_turns = 6;
    CHECK(call(kernel) == rows_done);
    call.scalars[1] = 0;
    CHECK(call(kernel) == rows_left);
    call.scalars = {-3, 2};
    CHECK(call(kernel) == rows_done);
    CHECK(call.rows == std::vector<std::int64_t>{0, 0});
  }
}

TEST_CASE("rows have a listing") {
  if (!Compiler::instance().is_available()) return;
  CHECK(Compiler::instance().listing(spec(), Listing::ir).find("define i64 @kplan_chosen") != std::string::npos);
}
