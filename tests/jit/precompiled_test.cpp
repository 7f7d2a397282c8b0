// Precompiled kernels: what random kernels seldom meet.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>

#include "jit/precompiled/precompiled_kernel.hpp"
#include "specs.hpp"

using namespace kplan;
using namespace kplan::test;
using jit::Instruction;
using jit::KernelArguments;
using jit::KernelSpec;
using jit::Opcode;
using jit::PrecompiledKernel;

namespace {

KernelSpec over(std::vector<std::int64_t> extents, std::vector<jit::Stream> streams,
                std::vector<Instruction> instructions, std::int32_t output) {
  KernelSpec spec;
  spec.extents = std::move(extents);
  spec.streams = std::move(streams);
  spec.instructions = std::move(instructions);
  spec.outputs = {{0, output}};
  jit::check(spec);
  return spec;
}

template <class T>
std::byte* at(std::vector<T>& of) {
  return reinterpret_cast<std::byte*>(of.data());
}

}  // namespace

// Sanitizers have their own operator new.
#if !defined(KPLAN_SANITIZE_ADDRESS) && !defined(KPLAN_SANITIZE_THREAD)
namespace {
thread_local std::size_t allocations = 0;
}

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* out = std::malloc(bytes)) return out;
  throw std::bad_alloc();
}
// Inlined without the other, they would seem mismatched to g++.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("a precompiled kernel allocates nothing when it runs") {
  std::vector<double> target(10000), source(10000, 1.5);
  std::vector<jit::ListEntry> list(100);
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = static_cast<jit::ListEntry>(8 * (i * 37 % 100));
  std::byte* bases[] = {at(target), at(source)};
  const jit::ListEntry* lists[] = {nullptr, list.data()};
  const std::vector<Instruction> sum = {load(0, Scalar::f64), load(1, Scalar::f64),
                                        apply(Operation::add, Scalar::f64, 0, 1)};
  std::vector<KernelSpec> specs = {copy_spec({30, 40}, {320, 8}, {8, 240}, 8), copy_spec({10000}, {8}, {8}, 8),
                                   widening_spec(3000),
                                   over({100, 100}, {{false, {800, 8}}, {false, {8, 800}}}, sum, 2),
                                   over({50}, {{false, {8}, 400}, {true, {8}, 0}}, sum, 2)};
  for (bool is_injective : {true, false}) {
    for (KernelSpec& spec : specs) {
      spec.is_injective = is_injective;
      const PrecompiledKernel kernel(spec);
      const std::size_t before = allocations;
      CHECK(kernel({bases, lists, 20, nullptr, nullptr, nullptr}) == 0);
      CHECK(allocations == before);
    }
  }
}
#endif

TEST_CASE("rows longer and shorter than a block are computed in full") {
  for (const std::int64_t rows : {1, 2, 7, 300}) {
    for (const std::int64_t length : {1, 3, 255, 256, 257, 1000}) {
      // Rows that do not touch, so that they stay rows.
      const auto count = static_cast<std::size_t>(rows * (length + 1));
      std::vector<std::int32_t> source(count), target(count, -1);
      std::iota(source.begin(), source.end(), 1);
      const KernelSpec spec = over({rows, length}, {{false, {4 * (length + 1), 4}}, {false, {4 * (length + 1), 4}}},
                                   {load(1, Scalar::i32), apply(Operation::mul, Scalar::i32, 0, 0)}, 1);
      std::byte* bases[] = {at(target), at(source)};
      CHECK(PrecompiledKernel(spec)({bases, nullptr, 0, nullptr, nullptr, nullptr}) == 0);
      bool ok = true;
      for (std::size_t i = 0; i < count; ++i) {
        const bool is_between = i % static_cast<std::size_t>(length + 1) == static_cast<std::size_t>(length);
        ok = ok && target[i] == (is_between ? -1
                                            : static_cast<std::int32_t>(static_cast<std::uint32_t>(source[i]) *
                                                                        static_cast<std::uint32_t>(source[i])));
      }
      INFO(rows << " rows of " << length);
      CHECK(ok);
    }
  }
}

TEST_CASE("a zero divisor in a later block is reported with its iteration in the spec's order") {
  // The source is contiguous along the first dimension, so the loops are exchanged; the number must not be.
  constexpr std::int64_t rows = 40, columns = 50;
  std::vector<std::int32_t> source(rows * columns, 3), target(rows * columns);
  const KernelSpec spec = over({rows, columns}, {{false, {4, 4 * rows}}, {false, {4, 4 * rows}}},
                               {load(1, Scalar::i32), apply(Operation::div, Scalar::i32, 0, 0)}, 1);
  std::byte* bases[] = {at(target), at(source)};
  const KernelArguments arguments{bases, nullptr, 0, nullptr, nullptr, nullptr};
  CHECK(PrecompiledKernel(spec)(arguments) == 0);
  source[17 + 31 * rows] = 0;  // row 17, column 31
  CHECK(PrecompiledKernel(spec)(arguments) == 1 + 17 * columns + 31);
  CHECK(jit::interpret(spec, arguments) == 1 + 17 * columns + 31);
}

TEST_CASE("a spec too large for blocks is interpreted") {
  // A chain in which every value is still needed at the end.
  std::vector<Instruction> instructions = {load(1, Scalar::f64)};
  for (std::int32_t i = 0; i < 700; ++i) instructions.push_back(apply(Operation::add, Scalar::f64, i, 0));
  std::int32_t sum = 700;
  for (std::int32_t i = 0; i < 700; ++i) {
    instructions.push_back(apply(Operation::add, Scalar::f64, sum, i));
    sum = 701 + i;
  }
  const KernelSpec spec = over({5}, {{false, {8}}, {false, {8}}}, instructions, sum);
  std::vector<double> source = {1, 2, 3, 4, 5}, target(5), expected(5);
  std::byte* bases[] = {at(target), at(source)};
  CHECK(PrecompiledKernel(spec)({bases, nullptr, 0, nullptr, nullptr, nullptr}) == 0);
  bases[0] = at(expected);
  CHECK(jit::interpret(spec, {bases, nullptr, 0, nullptr, nullptr, nullptr}) == 0);
  CHECK(target == expected);
}
