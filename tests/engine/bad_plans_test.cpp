// The engine says of a wrong plan what the reference interpreter says: the documents of tests/plans/bad.
#include "tests/plans/bad_plans.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "kplan/kplan.hpp"
#include "kplan/transport.hpp"

using namespace kplan;

namespace {

Values values_of(const PlanModel& plan, const ReferenceRank& rank) {
  Values out;
  for (std::size_t p = 0; p < plan.parameters.size(); ++p) {
    const ScalarValue& v = rank.parameters[p];
    if (v.type == Scalar::boolean) out.emplace_back(plan.parameters[p].name, v.as_boolean());
    else if (is_integer(v.type)) out.emplace_back(plan.parameters[p].name, v.as_integer());
    else out.emplace_back(plan.parameters[p].name, v.as_real());
  }
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    if (buffer.is_varying || buffer.type.is_record()) continue;
    const auto give = [&]<class T>(T) {
      std::vector<T> elements(rank.buffers[b].size() / sizeof(T));
      std::copy(rank.buffers[b].begin(), rank.buffers[b].end(), reinterpret_cast<std::byte*>(elements.data()));
      out.emplace_back(buffer.name, elements);
    };
    switch (buffer.type.scalar) {
      case Scalar::i32: give(std::int32_t{}); break;
      case Scalar::i64: give(std::int64_t{}); break;
      case Scalar::u8: give(std::uint8_t{}); break;
      default: break;
    }
  }
  return out;
}

}  // namespace

TEST_CASE("the engine finds the mistakes that the reference interpreter finds") {
  int compared = 0;
  for (const auto& path : test::documents_of("bad")) {
    INFO(path.filename().string());
    std::ifstream in(path, std::ios::binary);
    std::optional<Plan> plan;
    try {
      plan.emplace(Plan::parse(std::string{std::istreambuf_iterator<char>(in), {}}, path.filename().string()));
    } catch (const Error&) {
      continue;  // wrong before anybody runs it
    }
    std::string reference, engine;
    std::vector<ReferenceRank> world;
    try {
      for (std::int64_t r = 0; r < 3; ++r) world.push_back(test::simple_rank(plan->model(), r, 3));
      auto copy = world;
      run_reference(plan->model(), copy);
    } catch (const Error& e) {
      reference = e.code();
    }
    if (world.size() < 3 || reference == "KP-P056" || reference == "KP-P051" || reference == "KP-U001")
      continue;  // the interpreter's own limits
    try {
      transport::run_local(3, [&](std::shared_ptr<transport::Transport> transport) {
        ReferenceRank& mine = world[static_cast<std::size_t>(transport->rank())];
        Engine e(transport);
        Executable x = e.compile(*plan, values_of(plan->model(), mine));
        for (std::size_t b = 0; b < plan->model().buffers.size(); ++b)
          x.bind_bytes(plan->model().buffers[b].name, mine.buffers[b]);
        x.run();
      });
    } catch (const Unsupported&) {
      continue;
    } catch (const Error& e) {
      engine = e.code();
    }
    CHECK(engine == reference);
    ++compared;
  }
  CHECK(compared > 15);
}
