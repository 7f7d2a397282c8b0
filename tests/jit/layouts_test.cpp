// Layouts that the code generator treats in ways of their own: transpositions, elements a few apart, records, gathers.
// Expected bytes come from index arithmetic beside the test.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "guarded_memory.hpp"
#include "jit/compiler.hpp"
#include "specs.hpp"

using namespace kplan;
using namespace kplan::test;
using jit::at_run_time;
using jit::Compiler;
using jit::KernelSpec;

namespace {

/// Memory that ends, or begins, at a page that faults, filled with bytes that tell their places.
struct Array {
  Array(std::size_t size, bool at_end)
      : memory(size), bytes(at_end ? memory.at_end(size) : memory.at_begin()), count(size) {
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 131 + i / 251);
  }
  GuardedMemory memory;
  std::byte* bytes;
  std::size_t count;
};

enum class Stores { cached, past_caches };

void run(const KernelSpec& spec, std::vector<std::byte*> bases, std::vector<std::int64_t> extents,
         std::vector<std::int64_t> strides, Stores stores = Stores::cached) {
  const jit::KernelArguments arguments{
      bases.data(), nullptr, 0, extents.data(), strides.data(), nullptr, stores == Stores::past_caches};
  const auto kernels = Compiler::instance().compile({&spec, 1});
  CHECK(kernels[0](arguments) == 0);
}

}  // namespace

TEST_CASE("a transposition moves every element, whatever its size and the extents") {
  for (const std::int64_t bytes : {1, 2, 4, 8, 16}) {
    for (const auto& [rows, columns] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{8, 8}, {9, 17}, {33, 12}, {64, 31}, {7, 40}}) {
      for (const int hidden : {0, 1, 2}) {
        const auto size = static_cast<std::size_t>(rows * columns * bytes);
        for (const bool at_end : {false, true}) {
          Array source(size, at_end), target(size, at_end);
          KernelSpec spec = copy_spec({rows, columns}, {columns * bytes, bytes}, {bytes, rows * bytes}, bytes);
          if (hidden > 0) spec.extents = {at_run_time, at_run_time};
          if (hidden > 1) spec.streams[0].strides_bytes[0] = spec.streams[1].strides_bytes[1] = at_run_time;
          run(spec, {target.bytes, source.bytes}, {rows, columns}, {columns * bytes, bytes, bytes, rows * bytes});
          bool ok = true;
          for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t j = 0; j < columns; ++j) {
              ok = ok && std::memcmp(target.bytes + (i * columns + j) * bytes, source.bytes + (j * rows + i) * bytes,
                                     static_cast<std::size_t>(bytes)) == 0;
            }
          }
          INFO(bytes << " bytes, " << rows << " x " << columns << ", hidden " << hidden);
          CHECK(ok);
        }
      }
    }
  }
}

// What is between two columns is whole lines, or not; they begin where a line does, or not.
TEST_CASE("a transposition past the caches moves every element and nothing else") {
  for (const std::int64_t bytes : {1, 4, 8, 16}) {
    for (const auto& [rows, columns] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{77, 45}, {200, 16}, {9, 30}}) {
      const std::int64_t to_line = 64 - rows * bytes % 64;
      for (const auto& [gap, offset] : std::vector<std::pair<std::int64_t, std::int64_t>>{
               {to_line, 0}, {to_line, bytes}, {to_line, 64 - bytes}, {to_line, bytes / 2}, {bytes, 0}}) {
        for (const bool hidden : {false, true}) {
          const std::int64_t planes = 5, column_bytes = rows * bytes + gap,
                             plane_bytes = columns * column_bytes + 3 * bytes;
          Array source(static_cast<std::size_t>(planes * rows * columns * bytes), true),
              target(static_cast<std::size_t>(planes * plane_bytes + 64), false);
          std::vector<std::byte> expected(target.bytes, target.bytes + target.count);
          for (std::int64_t k = 0; k < planes; ++k)
            for (std::int64_t i = 0; i < rows; ++i)
              for (std::int64_t j = 0; j < columns; ++j)
                std::memcpy(
                    &expected[static_cast<std::size_t>(offset + k * plane_bytes + j * column_bytes + i * bytes)],
                    source.bytes + ((k * rows + i) * columns + j) * bytes, static_cast<std::size_t>(bytes));
          KernelSpec spec = copy_spec({planes, rows, columns}, {plane_bytes, bytes, column_bytes},
                                      {rows * columns * bytes, columns * bytes, bytes}, bytes);
          const std::vector<std::int64_t> strides = {plane_bytes,     bytes, column_bytes, rows * columns * bytes,
                                                     columns * bytes, bytes};
          if (hidden) {
            spec.extents = {at_run_time, at_run_time, at_run_time};
            spec.streams[0].strides_bytes = {at_run_time, bytes, at_run_time};
            spec.streams[1].strides_bytes = {at_run_time, at_run_time, bytes};
          } else if (rows != 77) {
            continue;
          }
          run(spec, {target.bytes + offset, source.bytes}, {planes, rows, columns}, strides, Stores::past_caches);
          INFO(bytes << " bytes, " << rows << " x " << columns << ", gap " << gap << ", offset " << offset
                     << ", hidden " << hidden);
          CHECK(std::equal(expected.begin(), expected.end(), target.bytes));
        }
      }
    }
  }
}

TEST_CASE("long runs past the caches are copied and nothing else") {
  for (const std::int64_t bytes : {511, 512, 513, 1023, 1025, 2048, 3000}) {
    for (const std::int64_t gap : {0, 1, 64}) {
      for (const std::int64_t offset : {0, 1, 16, 63}) {
        for (const bool hidden : {false, true}) {
          const std::int64_t rows = 7, row_bytes = bytes + gap;
          Array source(static_cast<std::size_t>(rows * bytes), true),
              target(static_cast<std::size_t>(rows * row_bytes + 64), false);
          std::vector<std::byte> expected(target.bytes, target.bytes + target.count);
          for (std::int64_t i = 0; i < rows; ++i)
            std::memcpy(&expected[static_cast<std::size_t>(offset + i * row_bytes)], source.bytes + i * bytes,
                        static_cast<std::size_t>(bytes));
          KernelSpec spec = copy_spec({rows, bytes}, {row_bytes, 1}, {bytes, 1}, 1);
          if (hidden) {
            spec.extents = {at_run_time, at_run_time};
            spec.streams[0].strides_bytes[0] = spec.streams[1].strides_bytes[0] = at_run_time;
          } else if (gap != 1) {
            continue;
          }
          run(spec, {target.bytes + offset, source.bytes}, {rows, bytes}, {row_bytes, 1, bytes, 1},
              Stores::past_caches);
          INFO(bytes << " bytes, gap " << gap << ", offset " << offset << ", hidden " << hidden);
          CHECK(std::equal(expected.begin(), expected.end(), target.bytes));
        }
      }
    }
  }
}

TEST_CASE("copies with small, large and negative strides touch nothing beyond their elements") {
  for (const std::int64_t bytes : {1, 2, 4, 8, 12, 16, 31, 100, 300}) {
    for (const std::int64_t steps : {-3, -1, 1, 2, 3, 4, 9}) {
      for (const std::int64_t count : {1, 3, 15, 16, 131}) {
        for (const auto& [packs, hidden] : {std::pair(true, false), {false, false}, {true, true}, {false, true}}) {
          const std::int64_t stride = steps * bytes, span = (count - 1) * std::abs(stride) + bytes;
          Array wide(static_cast<std::size_t>(span), count % 2 != 0),
              packed(static_cast<std::size_t>(count * bytes), true);
          std::byte* first = wide.bytes + (stride < 0 ? span - bytes : 0);
          const std::vector<std::byte> before(wide.bytes, wide.bytes + span);
          KernelSpec spec =
              packs ? copy_spec({count}, {bytes}, {stride}, bytes) : copy_spec({count}, {stride}, {bytes}, bytes);
          const std::vector<std::int64_t> strides = packs ? std::vector{bytes, stride} : std::vector{stride, bytes};
          if (hidden) {
            spec.extents = {at_run_time};
            spec.streams[packs ? 1 : 0].strides_bytes = {at_run_time};
          }
          run(spec, packs ? std::vector{packed.bytes, first} : std::vector{first, packed.bytes}, {count}, strides);
          bool ok = true;
          for (std::int64_t i = 0; i < count; ++i) {
            ok = ok && std::memcmp(packed.bytes + i * bytes, first + i * stride, static_cast<std::size_t>(bytes)) == 0;
          }
          for (std::int64_t i = 0; i < span && !packs; ++i) {
            if (i % std::abs(stride) >= bytes) ok = ok && wide.bytes[i] == before[static_cast<std::size_t>(i)];
          }
          INFO(bytes << " bytes, stride " << stride << ", count " << count << (packs ? ", packs" : ", unpacks"));
          REQUIRE(ok);
        }
      }
    }
  }
}

TEST_CASE("a list gathers elements into a packed target, whether lines are asked for ahead or not") {
  const std::vector<std::pair<std::int64_t, std::size_t>> shapes{{4, 100}, {8, 100}, {24, 100}, {64, 3}, {8, 40003}};
  for (const auto& [bytes, length] : shapes) {
    KernelSpec spec;
    spec.streams = {{false, {}, bytes}, {true, {}, 0, bytes}};
    spec.copy_bytes = bytes;
    std::vector<jit::ListEntry> list;
    for (std::size_t o = 0; o < length; ++o) list.push_back(static_cast<jit::ListEntry>(o * 37 % (length + 1)));
    const std::size_t all_bytes = length * static_cast<std::size_t>(bytes);
    Array source(all_bytes + static_cast<std::size_t>(bytes), true), target(all_bytes, true);
    std::byte* bases[] = {target.bytes, source.bytes};
    const jit::ListEntry* lists[] = {nullptr, list.data()};
    const auto kernels = Compiler::instance().compile({&spec, 1});
    for (const std::uint32_t lists_go_far : {0u, 1u}) {
      std::memset(target.bytes, 0, all_bytes);
      CHECK(kernels[0]({.bases = bases,
                        .lists = lists,
                        .list_length = static_cast<std::int64_t>(length),
                        .extents = nullptr,
                        .strides_bytes = nullptr,
                        .scalars = nullptr,
                        .lists_go_far = lists_go_far}) == 0);
      bool ok = true;
      for (std::size_t o = 0; o < length; ++o) {
        ok = ok && std::memcmp(target.bytes + o * static_cast<std::size_t>(bytes), source.bytes + list[o] * bytes,
                               static_cast<std::size_t>(bytes)) == 0;
      }
      CHECK(ok);
    }
  }
}

TEST_CASE("fields of records are read and written at their offsets") {
  struct Particle {
    float charge;
    double x[3];
    bool is_alive;
  };
  KernelSpec spec;
  spec.extents = {19};
  constexpr auto size = static_cast<std::int64_t>(sizeof(Particle));
  spec.streams = {{false, {16}, 0}, {false, {size}, 0}};
  spec.instructions = {load(1, Scalar::f32, offsetof(Particle, charge)),
                       load(1, Scalar::f64, offsetof(Particle, x) + 8), apply(Operation::convert, Scalar::f64, 0),
                       apply(Operation::mul, Scalar::f64, 1, 2),
                       load(1, Scalar::boolean, offsetof(Particle, is_alive))};
  spec.outputs = {{0, 3}, {8, 4}};
  std::vector<Particle> particles(19);
  for (std::size_t i = 0; i < particles.size(); ++i) {
    particles[i] = {static_cast<float>(i) / 7, {1, 1.5 * static_cast<double>(i), 3}, i % 3 == 0};
  }
  std::vector<std::byte> target(19 * 16);
  run(spec, {target.data(), reinterpret_cast<std::byte*>(particles.data())}, {}, {});
  for (std::size_t i = 0; i < particles.size(); ++i) {
    double product = 0;
    std::memcpy(&product, target.data() + 16 * i, 8);
    CHECK(product == particles[i].x[1] * static_cast<double>(particles[i].charge));
    CHECK(target[16 * i + 8] == std::byte{particles[i].is_alive});
  }
}
