// What --verify looks at: every byte of every element, gaps and margins too, and no padding.
#include "tools/kplan/rank_memory.hpp"

#include <catch2/catch.hpp>
#include <cstring>

using namespace kplan;
using namespace kplan::cli;

namespace {

/// A buffer of 2 x 2 elements, the rows 3 elements apart, so that one element's room lies between them.
struct World {
  Buffer buffer;
  RankMemory memory;
  std::vector<std::byte> expected;

  explicit World(const ElementType& type) {
    buffer.name = "A";
    buffer.type = type;
    const Layout layout{{2, 2}, {3, 1}, 4, 5};
    memory.rank = 7;
    memory.layouts = {layout};
    memory.buffers.emplace_back(layout, type);
    each_element(layout, [&](const auto& at, std::int64_t offset) {
      ScalarValue::real(static_cast<double>(10 * at[0] + at[1]))
          .store(memory.buffers[0].bytes().data() + static_cast<std::size_t>(offset) * type.size_bytes);
      return true;
    });
    expected.assign(memory.buffers[0].bytes().begin(), memory.buffers[0].bytes().end());
  }
  std::byte& at(std::size_t byte) { return memory.buffers[0].bytes()[byte]; }
  std::optional<std::string> difference() { return first_difference(buffer, memory, 0, expected); }
};

}  // namespace

TEST_CASE("equal memory has no difference") { CHECK(!World(Scalar::f64).difference()); }

TEST_CASE("the first element that differs is named with its rank, indices and both values") {
  World w(Scalar::f64);
  ScalarValue::real(-1).store(&w.at(3 * 8));
  ScalarValue::real(-2).store(&w.at(4 * 8));
  CHECK(w.difference() == "buffer A on rank 7 differs: A[1,0] is -1, expected 10");
}

TEST_CASE("elements that print alike and differ in bits are shown by their bytes") {
  World w(Scalar::f64);
  const std::uint64_t quiet[] = {0x7ff8000000000000u, 0x7ff8000000000001u};
  std::memcpy(&w.at(0), &quiet[0], 8);
  std::memcpy(w.expected.data(), &quiet[1], 8);
  const auto difference = w.difference();
  REQUIRE(difference);
  CHECK(difference->find("(bytes 01 00 00 00 00 00 f8 7f)") != std::string::npos);
}

TEST_CASE("a write between the elements of a strided buffer is a difference") {
  World w(Scalar::f64);
  w.at(2 * 8 + 5) = std::byte{0};
  CHECK(w.difference() ==
        "buffer A on rank 7 differs: memory between its elements, 16 bytes from its start, was written");
}

TEST_CASE("a write beside the buffer is a difference") {
  for (const int where : {-1, 5 * 8}) {
    World w(Scalar::f64);
    *(w.memory.buffers[0].bytes().data() + where) = std::byte{0};
    CHECK(w.difference() == "memory outside buffer A was written on rank 7");
  }
}

TEST_CASE("padding of records is not compared and their fields are") {
  World w(record_of({{"value", Scalar::f64}, {"index", Scalar::i32}}));
  w.at(16 + 13) = std::byte{0};
  CHECK(!w.difference());
  w.at(16 + 8) ^= std::byte{1};
  CHECK(w.difference().value().starts_with("buffer A on rank 7 differs: A[0,1] is {1, "));
}
