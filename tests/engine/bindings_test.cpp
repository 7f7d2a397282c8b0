// What memory can be bound, how long it lives, and how its type is compared with the plan's.
#include <array>
#include <catch2/catch.hpp>
#include <complex>
#include <optional>

#include "tests/engine/on_ranks.hpp"

using namespace kplan;

namespace {

struct Atom {
  double x;
  std::int32_t id;
};
struct LongAtom {
  Atom atom;
  double mass;
};

const char* const atoms = R"json({"kplan": 1, "name": "atoms", "types":
    {"atom": {"fields": [{"name": "x", "type": "f64"}, {"name": "id", "type": "i32"}]}}, "buffers":
    {"p": {"type": "atom", "shape": [2]}, "q": {"type": "atom", "shape": [2]}},
    "statements": [{"name": "s", "communicate": "q@0 <<= p@0"}]})json";

}  // namespace

TEST_CASE("numbers of every kind are bound one at a time, complex ones too") {
  tests::on_ranks(1, [](Engine& engine) {
    Executable x = engine.compile(Plan::parse(R"json({"kplan": 1, "name": "numbers", "buffers":
      {"a": {"type": "c64", "shape": [1]}, "b": {"type": "c128", "shape": [1]}, "c": {"type": "bool", "shape": [1]}},
      "statements": [{"communicate": "b@0 <<= a@0"}, {"communicate": "c[0]@0 <<= true@0"}]})json"));
    const std::complex<float> a(1, 2);
    std::complex<double> b;
    bool c = false;
    x.bind("a", a);
    x.bind("b", b);
    x.bind("c", c);
    x.run();
    tests::claim(b == std::complex<double>(1, 2) && c, "they have come");
  });
}

TEST_CASE("records are bound as arrays of a type of the same size, constant ones where nothing writes them") {
  tests::on_ranks(1, [](Engine& engine) {
    Executable x = engine.compile(Plan::parse(atoms));
    const std::array<Atom, 2> p{Atom{.5, 1}, Atom{1.5, 2}};
    std::array<Atom, 2> q{};
    x.bind("p", p);
    x.bind("q", q);
    x.run();
    tests::claim(q[0].x == .5 && q[0].id == 1 && q[1].x == 1.5 && q[1].id == 2, "they have come");
    q = {};
    x.bind_bytes("p", std::as_bytes(std::span(p)));
    x.run();
    tests::claim(q[1].id == 2, "constant bytes do as well");
    const auto refusal = [&](const char* buffer, auto&& memory) {
      return tests::error_of([&] { x.bind(buffer, memory); });
    };
    const std::string another_size = refusal("p", std::vector<LongAtom>(2));
    tests::claim(another_size ==
                     "plan atoms: buffer `p` holds records of 16 bytes, and memory of records of 24 bytes "
                     "was given; bind records of that size, or their bytes with bind_bytes [KP-B025]",
                 another_size);
    tests::claim(refusal("p", std::vector<double>(4)).ends_with("[KP-B025]"), "numbers are no records");
    tests::claim(refusal("q", p).ends_with("[KP-B028]"), "constant memory is not written");
    const std::string bytes = tests::error_of([&] { x.bind_bytes("q", std::as_bytes(std::span(p))); });
    tests::claim(bytes.ends_with("[KP-B028]"), "nor are constant bytes");
  });
}

TEST_CASE("records are none of the numbers that a buffer holds") {
  tests::on_ranks(1, [](Engine& engine) {
    Executable x = engine.compile(Plan::parse(R"json({"kplan": 1, "name": "numbers", "buffers":
      {"a": {"type": "f64", "shape": [2]}}, "statements": [{"communicate": "a[0]@0 <<= a[1]@0"}]})json"));
    std::vector<Atom> one(1);
    const std::string error = tests::error_of([&] { x.bind("a", one); });
    tests::claim(error == "plan numbers: buffer `a` holds f64, and memory of records of 16 bytes was given [KP-B025]",
                 error);
  });
}

TEST_CASE("the memory of a shared array lives as long as it is bound") {
  tests::on_ranks(2, [](Engine& engine) {
    Executable x = engine.compile(Plan::parse(atoms));
    std::weak_ptr<std::byte> memory;
    std::vector<Atom> q(2);
    {
      SharedArray<Atom> p = engine.allocate<Atom>(2, Written::seldom);
      p[1] = {2.5, 3};
      memory = p.shared_memory();
      x.bind("p", p);
    }
    x.bind("q", q);
    x.run();
    tests::claim(engine.rank() != 0 || (q[1].x == 2.5 && q[1].id == 3), "it is still there");
    std::vector<Atom> other(2);
    tests::claim(!memory.expired(), "it is bound");
    x.bind("p", other);
    tests::claim(memory.expired(), "nobody has it any more");
  });
}

TEST_CASE("an executable outlives its engine") {
  tests::on_ranks(1, [](Engine& given) {
    std::optional<Engine> engine(std::move(given));
    engine->register_operator("add", [](void* places, const void* values, std::size_t count) {
      for (std::size_t k = 0; k < count; ++k) static_cast<double*>(places)[k] += static_cast<const double*>(values)[k];
    });
    Executable x = engine->compile(Plan::parse(R"json({"kplan": 1, "name": "sum", "buffers":
      {"a": {"type": "f64", "shape": [1]}, "b": {"type": "f64", "shape": [1]}}, "operators": {"add": {"native": true}},
      "statements": [{"communicate": "b[0]@0 << add << a[0]@0"}]})json"));
    engine.reset();
    double a = 2, b = 1;
    x.bind("a", a);
    x.bind("b", b);
    x.run();
    tests::claim(b == 3, "it runs");
  });
}

TEST_CASE("values are made of any number and any array of numbers") {
  const std::array<std::int32_t, 3> numbers{1, 2, 3};
  const Values values{
      {"a", numbers}, {"b", std::span(numbers)}, {"c", std::complex<float>(1, 2)}, {"d", numbers.size()}};
  CHECK(values[0].second.array_type() == Scalar::i32);
  CHECK(std::ranges::equal(values[0].second.bytes(), values[1].second.bytes()));
  CHECK(values[0].second.bytes().size() == sizeof numbers);
  CHECK(std::get<std::complex<double>>(values[2].second.scalar()) == std::complex<double>(1, 2));
  CHECK(std::get<std::int64_t>(values[3].second.scalar()) == 3);
}

TEST_CASE("an empty function is no operator") {
  tests::on_ranks(1, [](Engine& engine) {
    const std::string error = tests::error_of([&] { engine.register_operator("op", nullptr); });
    tests::claim(error == "operator `op` is an empty function; register one that can be called [KP-B031]", error);
  });
}

TEST_CASE("a null pointer is no memory, and a buffer that there is not is answered by those that there are") {
  tests::on_ranks(1, [](Engine& engine) {
    Executable x = engine.compile(Plan::parse(atoms));
    const std::string null = tests::error_of([&] { x.bind("p", std::span<Atom>(static_cast<Atom*>(nullptr), 2)); });
    tests::claim(
        null == "plan atoms: buffer `p` has 2 elements on rank 0; memory at a null pointer was given [KP-B022]", null);
    Atom other[2];
    const std::string unknown = tests::error_of([&] { x.bind("velocities", other); });
    tests::claim(unknown == "plan atoms has no buffer `velocities`; there are p, q [KP-B020]", unknown);
  });
}
