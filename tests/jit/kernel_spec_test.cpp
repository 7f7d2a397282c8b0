// Specs as data: equality, keys, text, the rules of well-formedness, and what interpret() makes of them.
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>

#include "jit/compiler.hpp"
#include "kplan/error.hpp"
#include "specs.hpp"

using namespace kplan;
using namespace kplan::test;
using jit::KernelSpec;

TEST_CASE("equal specs have equal keys, whatever their names") {
  KernelSpec a = widening_spec(10), b = widening_spec(10);
  b.name = "another";
  CHECK(a == b);
  CHECK(a.key() == b.key());
}

TEST_CASE("every field of a spec but its name changes the key") {
  const KernelSpec base = widening_spec(10);
  const std::vector<std::function<void(KernelSpec&)>> changes = {
      [](KernelSpec& s) { s.extents[0] = 11; },
      [](KernelSpec& s) { s.streams[1].strides_bytes[0] = 8; },
      [](KernelSpec& s) { s.streams[1].is_indexed = true; },
      [](KernelSpec& s) { s.streams[0].list_stride_bytes = 8; },
      [](KernelSpec& s) { s.streams[0].list_scale_bytes = 8; },
      [](KernelSpec& s) { s.is_injective = false; },
      [](KernelSpec& s) { s.copy_bytes = 4; },
      [](KernelSpec& s) { s.instructions[0].type = Scalar::i32; },
      [](KernelSpec& s) { s.instructions[0].offset_bytes = 4; },
      [](KernelSpec& s) { s.instructions[1].operation = Operation::abs; },
      [](KernelSpec& s) { s.instructions[1].guard = 0; },
      [](KernelSpec& s) { s.instructions[1].bits[1] = 1; },
      [](KernelSpec& s) { s.instructions[1].position_strides = {1}; },
      [](KernelSpec& s) { s.outputs[0].instruction = 0; },
      [](KernelSpec& s) { s.outputs.clear(); },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    KernelSpec changed = base;
    changes[i](changed);
    INFO("change " << i);
    CHECK(changed.key() != base.key());
    CHECK_FALSE(changed == base);
  }
}

TEST_CASE("a spec's text is the loop nest with its literal strides and what is known at run time only") {
  KernelSpec spec = widening_spec(64);
  spec.extents = {jit::at_run_time, 64};
  spec.streams[0].strides_bytes = {512, 8};
  spec.streams[1].strides_bytes = {jit::at_run_time, -4};
  CHECK(spec.to_text() ==
        "widen:  // iterations in any order\n"
        "  for (i0 = 0; i0 < extent0; ++i0) {  // extent0 at run time\n"
        "    for (i1 = 0; i1 < 64; ++i1) {\n"
        "      *(f64*)(target + 512*i0 + 8*i1) = f64(*(f32*)(source1 + stride1_0*i0 - 4*i1));\n"
        "    }\n"
        "  }\n");
}

TEST_CASE("a malformed spec is refused with the rule's code") {
  struct Case {
    const char* code;
    std::function<void(KernelSpec&)> spoil;
  };
  const std::vector<Case> cases = {
      {"KP-I101", [](KernelSpec& s) { s.extents.assign(9, 2); }},
      {"KP-I102", [](KernelSpec& s) { s.extents[0] = 0; }},
      {"KP-I103", [](KernelSpec& s) { s.streams.clear(); }},
      {"KP-I104", [](KernelSpec& s) { s.streams[1].strides_bytes.clear(); }},
      {"KP-I104", [](KernelSpec& s) { s.streams[1].list_stride_bytes = 8; }},
      {"KP-I105", [](KernelSpec& s) { s.copy_bytes = 4; }},
      {"KP-I106", [](KernelSpec& s) { s.instructions[1].a = 1; }},
      {"KP-I107", [](KernelSpec& s) { s.instructions[1].operation = Operation::bit_not; }},
      {"KP-I108", [](KernelSpec& s) { s.instructions[0].stream = 2; }},
      {"KP-I109", [](KernelSpec& s) { s.outputs[0].instruction = 2; }},
      {"KP-I109", [](KernelSpec& s) { s.outputs.clear(); }},
      {"KP-I110", [](KernelSpec& s) { s.instructions[0].opcode = jit::Opcode::position; }},
      {"KP-I110", [](KernelSpec& s) { s.instructions[0].opcode = jit::Opcode::scalar; }},
      {"KP-I111", [](KernelSpec& s) { s.instructions[1].guard = 0; }},
  };
  for (const Case& c : cases) {
    KernelSpec spec = widening_spec(4);
    c.spoil(spec);
    INFO(c.code);
    try {
      jit::check(spec);
      FAIL("accepted");
    } catch (const InternalError& error) {
      CHECK(error.code() == c.code);
    }
  }
}

TEST_CASE("the interpreter and compiled code pack a face as a plain loop does") {
  // The face j = 2 of a 4 x 5 x 6 box of i32.
  std::vector<std::int32_t> box(4 * 5 * 6), expected, packed(4 * 6), compiled(4 * 6);
  for (std::size_t i = 0; i < box.size(); ++i) box[i] = static_cast<std::int32_t>(i * i);
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t k = 0; k < 6; ++k) expected.push_back(box[(i * 5 + 2) * 6 + k]);
  }
  const KernelSpec spec = copy_spec({4, 6}, {24, 4}, {120, 4}, 4);
  std::byte* bases[] = {reinterpret_cast<std::byte*>(packed.data()), reinterpret_cast<std::byte*>(box.data() + 12)};
  const jit::KernelArguments arguments{bases, nullptr, 0, nullptr, nullptr, nullptr};
  CHECK(jit::interpret(spec, arguments) == 0);
  CHECK(packed == expected);
  bases[0] = reinterpret_cast<std::byte*>(compiled.data());
  CHECK(jit::Compiler::instance().compile({&spec, 1})[0](arguments) == 0);
  CHECK(compiled == expected);
}

TEST_CASE("iterations that meet in the target are done in order") {
  // histogram[list[o]] += source[o], with repeated entries.
  KernelSpec spec;
  spec.is_injective = false;
  spec.streams = {{true, {}, 0}, {false, {}, 8}};
  spec.instructions = {load(0, Scalar::f64), load(1, Scalar::f64), apply(Operation::add, Scalar::f64, 0, 1)};
  spec.outputs = {{0, 2}};
  std::vector<double> histogram(3, 0), source = {1, 2, 4, 8, 16};
  const std::vector<jit::ListEntry> list = {0, 8, 0, 16, 0};
  std::byte* bases[] = {reinterpret_cast<std::byte*>(histogram.data()), reinterpret_cast<std::byte*>(source.data())};
  const jit::ListEntry* lists[] = {list.data(), nullptr};
  const jit::KernelArguments arguments{bases, lists, 5, nullptr, nullptr, nullptr};
  CHECK(jit::Compiler::instance().compile({&spec, 1})[0](arguments) == 0);
  CHECK(histogram == std::vector<double>{21, 2, 8});
}

TEST_CASE("a zero divisor is reported with its iteration, unless the division is not wanted") {
  KernelSpec spec;
  spec.extents = {3, jit::at_run_time};
  spec.streams = {{false, {16, 4}, 0}, {false, {16, 4}, 0}, {false, {4, 1}, 0}};
  jit::Instruction hundred;
  hundred.type = Scalar::i32;
  hundred.bits[0] = 100;
  spec.instructions = {load(1, Scalar::i32), load(2, Scalar::boolean), hundred,
                       apply(Operation::div, Scalar::i32, 2, 0)};
  spec.instructions[3].guard = 1;
  spec.outputs = {{0, 3}};
  std::int32_t divisors[3][4] = {{1, 2, 3, 4}, {-3, 0, 7, 8}, {0, 5, 6, 9}}, quotients[3][4] = {};
  bool wanted[3][4] = {{true, true, true, true}, {true, false, true, true}, {true, true, true, true}};
  std::byte* bases[] = {reinterpret_cast<std::byte*>(quotients), reinterpret_cast<std::byte*>(divisors),
                        reinterpret_cast<std::byte*>(wanted)};
  const std::int64_t extents[] = {3, 4};
  const jit::KernelArguments arguments{bases, nullptr, 0, extents, nullptr, nullptr};
  const auto kernels = jit::Compiler::instance().compile({&spec, 1});
  CHECK(jit::interpret(spec, arguments) == 9);  // the first in row 2
  CHECK(kernels[0](arguments) == 9);
  divisors[2][0] = 1;
  CHECK(kernels[0](arguments) == 0);
  CHECK(quotients[1][0] == -34);  // floor, not truncation
  CHECK(quotients[1][1] == 0);
  CHECK(quotients[2][3] == 11);
}
