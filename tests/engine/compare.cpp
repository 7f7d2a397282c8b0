// Runs a random plan twice over, with the reference interpreter and with engines on threads, from the same memory.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <thread>

#include "engine/analysis/knowledge.hpp"
#include "engine/analysis/planes.hpp"
#include "kplan/kplan.hpp"
#include "plans/evaluate.hpp"
#include "plans/reference.hpp"
#include "random_plan.hpp"

namespace kplan::test {
namespace {

/// Deterministic contents: small numbers, so that products stay finite and sums are exact or not alike on both sides.
void fill(const PlanModel& plan, const RandomPlan& drawn, int rank, std::size_t b, std::vector<std::byte>& memory) {
  const Buffer& buffer = plan.buffers[b];
  std::mt19937_64 random(drawn.data_seed + 7919 * b +
                         (buffer.is_uniform ? 0 : 104729 * static_cast<std::uint64_t>(rank)));
  const std::size_t size = buffer.type.size_bytes;
  const auto draw = [&](Scalar type, std::byte* at) {
    const auto v = static_cast<std::int64_t>(random() % 12);
    if (is_complex(type)) {
      double parts[2] = {static_cast<double>(v) / 3, static_cast<double>(random() % 5) - 2};
      convert(ScalarValue::load(Scalar::c128, parts), type).store(at);
    } else if (is_real(type)) {
      convert(ScalarValue::real(static_cast<double>(v) / 3 - 1), type).store(at);
    } else {
      convert(ScalarValue::integer(type == Scalar::boolean ? v % 2 : v), type).store(at);
    }
  };
  for (std::size_t k = 0; (k + 1) * size <= memory.size(); ++k) {
    if (!buffer.type.is_record()) draw(buffer.type.scalar, memory.data() + k * size);
    for (const Field& f : buffer.type.fields) draw(f.type, memory.data() + k * size + f.offset_bytes);
  }
}

Values values_of(const PlanModel& plan, const ReferenceRank& rank) {
  Values out{{"own", rank.parameters[1].as_integer()}, {"same", rank.parameters[2].as_integer()}};
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    if (plan.buffers[b].is_varying) continue;
    const auto& bytes = rank.buffers[b];
    if (plan.buffers[b].type.scalar == Scalar::i32)
      out.emplace_back(plan.buffers[b].name,
                       std::span(reinterpret_cast<const std::int32_t*>(bytes.data()), bytes.size() / 4));
    else if (plan.buffers[b].type.scalar == Scalar::i64)
      out.emplace_back(plan.buffers[b].name,
                       std::span(reinterpret_cast<const std::int64_t*>(bytes.data()), bytes.size() / 8));
    else
      out.emplace_back(plan.buffers[b].name,
                       std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
  }
  return out;
}

std::vector<std::string> classes_of(const PlanModel& plan) {
  const auto as_run = with_planes({std::shared_ptr<const void>(), &plan});
  std::vector<std::string> out;
  for (const Statement& s : as_run->statements) {
    const Knowledge k = infer_knowledge(*as_run, s);
    out.push_back(fmt::format("{}{}{}{}", name_of(k.knowledge), k.is_varying ? ", varying" : "",
                              planes_of(*as_run, s).empty() ? "" : ", on planes", s.group >= 0 ? ", in a group" : ""));
  }
  return out;
}

}  // namespace

std::vector<std::pair<std::string, std::int64_t>> varying_values(int run, std::size_t rank) {
  return {{"upper", 2 + run}, {"mine", (static_cast<std::int64_t>(rank) * 7 + run * 3) % 11}};
}

Expectation expectation_of(const RandomPlan& drawn, int runs) {
  Expectation out;
  try {
    out.plan.emplace(Plan::parse(drawn.to_json(), "random.json"));
  } catch (const Error& e) {
    out.error = e.what();
    return out;
  }
  const PlanModel& model = out.plan->model();
  out.before.resize(static_cast<std::size_t>(drawn.ranks));
  for (int r = 0; r < drawn.ranks; ++r) {
    ReferenceRank& rank = out.before[static_cast<std::size_t>(r)];
    rank.parameters = {ScalarValue::real(1.5), ScalarValue::integer(r + 2), ScalarValue::integer(3),
                       ScalarValue::integer(2), ScalarValue::integer(1)};
    const auto layouts = layouts_of(model, r, drawn.ranks, rank.parameters);
    for (std::size_t b = 0; b < model.buffers.size(); ++b) {
      rank.buffers.emplace_back(static_cast<std::size_t>(layouts[b].extent) * model.buffers[b].type.size_bytes);
      fill(model, drawn, r, b, rank.buffers.back());
    }
  }
  out.after = out.before;
  try {
    for (int k = 0; k < runs; ++k) {
      for (std::size_t r = 0; r < out.after.size(); ++r)
        for (const auto& [name, value] : varying_values(k, r))
          out.after[r].parameters[static_cast<std::size_t>(model.find_parameter(name))] = ScalarValue::integer(value);
      run_reference(model, out.after);
    }
  } catch (const Error& e) {
    out.error = e.what();
  }
  return out;
}

void run_engine(std::shared_ptr<transport::Transport> transport, const Plan& plan, ReferenceRank& mine, int runs) {
  Engine engine(std::move(transport));
  Executable executable = engine.compile(plan, values_of(plan.model(), mine));
  // Some ranks use memory that others of the node can read.
  std::vector<SharedArray<std::byte>> shared(mine.buffers.size());
  const bool is_shared = (mine.buffers.size() + static_cast<std::size_t>(engine.rank())) % 3 != 0;
  for (std::size_t b = 0; b < mine.buffers.size(); ++b) {
    if (!plan.model().buffers[b].is_varying) continue;
    std::span<std::byte> memory = mine.buffers[b];
    if (is_shared) {
      shared[b] = engine.allocate<std::byte>(memory.size());
      std::ranges::copy(memory, shared[b].begin());
      memory = shared[b];
    }
    executable.bind_bytes(plan.model().buffers[b].name, memory);
  }
  std::exception_ptr failure;
  for (int k = 0; k < runs; ++k) {
    for (const auto& [name, value] : varying_values(k, static_cast<std::size_t>(engine.rank())))
      executable.set(name, value);
    try {
      // Some ranks wait for their receivers while they send, others send all before they wait, or never wait.
      const int way = (k + engine.rank()) % 3;
      if (way == 0) {
        executable.run();
      } else {
        executable.start();
        while (way == 2 && !executable.test()) std::this_thread::yield();
        executable.wait();
      }
    } catch (const TransportError&) {
      throw;
    } catch (const Error&) {  // the others go on, and count on this rank
      if (!failure) failure = std::current_exception();
    }
  }
  for (std::size_t b = 0; b < shared.size(); ++b) std::ranges::copy(shared[b], mine.buffers[b].begin());
  if (failure) std::rethrow_exception(failure);
}

std::string difference(const PlanModel& model, const ReferenceRank& expected, const ReferenceRank& actual,
                       std::size_t rank) {
  for (std::size_t b = 0; b < model.buffers.size(); ++b) {
    const auto &e = expected.buffers[b], &a = actual.buffers[b];
    for (std::size_t k = 0; k < e.size(); ++k) {
      if (e[k] == a[k]) continue;
      const std::size_t size = model.buffers[b].type.size_bytes, element = k / size;
      const Scalar type = model.buffers[b].type.is_record() ? Scalar::u8 : model.buffers[b].type.scalar;
      return fmt::format("element {} (byte {}) of {} on rank {}: expected {}, got {}", element, k % size,
                         model.buffers[b].name, rank, to_text(ScalarValue::load(type, &e[element * size])),
                         to_text(ScalarValue::load(type, &a[element * size])));
    }
  }
  return "";
}

Outcome compare_with_reference(const RandomPlan& drawn, int runs) {
  const Expectation expected = expectation_of(drawn, runs);
  if (!expected.plan) return {Outcome::Kind::both_failed, expected.error, {}};
  const std::vector<std::string> classes = classes_of(expected.plan->model());
  std::vector<ReferenceRank> actual = expected.before;
  std::string engine_error;
  try {
    transport::run_local(drawn.ranks, [&](std::shared_ptr<transport::Transport> transport) {
      const auto rank = static_cast<std::size_t>(transport->rank());
      run_engine(std::move(transport), *expected.plan, actual[rank], runs);
    });
  } catch (const Error& e) {
    engine_error = e.what();
  }
  if (expected.error.empty() != engine_error.empty())
    return {Outcome::Kind::different,
            fmt::format("reference: {}\nengine: {}", expected.error.empty() ? "succeeds" : expected.error,
                        engine_error.empty() ? "succeeds" : engine_error),
            classes};
  if (!expected.error.empty()) return {Outcome::Kind::both_failed, expected.error, classes};
  for (std::size_t r = 0; r < actual.size(); ++r) {
    const std::string what = difference(expected.plan->model(), expected.after[r], actual[r], r);
    if (!what.empty()) return {Outcome::Kind::different, what, classes};
  }
  return {Outcome::Kind::identical, "", classes};
}

}  // namespace kplan::test
