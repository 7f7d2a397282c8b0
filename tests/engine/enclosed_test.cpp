// Short messages that letters of a varying statement carry for other statements of its phase.
#include <catch2/catch.hpp>

#include "engine/bind.hpp"
#include "engine/runtime/program.hpp"
#include "tests/engine/on_ranks.hpp"
#include "tests/engine/wrapped_transport.hpp"

using namespace kplan;
using tests::claim;
using tests::error_of;

namespace {

/// Ranks as threads that send letters as ranks over MPI do.
class TellingTransport final : public tests::WrappedTransport {
 public:
  using WrappedTransport::WrappedTransport;
  bool tells_faster() const override { return true; }
  std::size_t best_shared_bytes(int peer) const override { return peer == rank() ? 0 : 2048; }
};

void on_telling_ranks(int ranks, const std::function<void(const std::shared_ptr<transport::Transport>&)>& body) {
  transport::run_local(ranks, [&](std::shared_ptr<transport::Transport> base) {
    body(std::make_shared<TellingTransport>(std::move(base)));
  });
}

/// Parts whose lengths only their sender knows, or which their receiver asks for (by rows, or, where `where` says so,
/// the general way); and with them the lengths, a product with a varying parameter, a sum, and what is too long.
std::string plan_of(bool is_pull, const std::string& where = "") {
  const std::string parts =
      is_pull ? R"("direction": "pull", "communicate": "inbox[other, j]@rank <<= outbox[first + j]@other)"
              : R"("communicate": "inbox[mine, j]@other <<= outbox[first + j]@rank)";
  return R"json({"kplan": 1, "name": "parts", "parameters": {"factor": {"type": "i64", "time": "varying", "default": 1}},
    "buffers": {"counts": {"type": "i32", "shape": ["size"], "time": "varying"},
      "firsts": {"type": "i32", "shape": ["size"], "time": "varying"}, "outbox": {"type": "f64", "shape": [64]},
      "inbox": {"type": "f64", "shape": ["size", 20]}, "lengths": {"type": "i32", "shape": ["size"]},
      "own": {"type": "i64", "shape": [2]}, "next": {"type": "i64", "shape": [2]}, "sum": {"type": "i64", "shape": [1]},
      "long": {"type": "f64", "shape": [3000]}, "far": {"type": "f64", "shape": [3000]}},
    "statements": [
      {"communicate": "lengths[mine]@other <<= counts[other]@rank where mine = rank, other in world, other != rank"},
      {"name": "parts", )json" +
         parts + " where mine = rank, other in world, other != rank, first = firsts[other], j in range(counts[other])" +
         where + R"json("},
      {"communicate": "next[1 - k]@(r + 1) % size <<= factor * own[k]@r where r in world, k in range(2)"},
      {"communicate": "sum[0]@(r + 2) % size << sum << own[0]@r where r in world"},
      {"communicate": "far[k]@(r + 1) % size <<= long[k]@r where r in world, k in range(3000)"}]})json";
}

struct Parts {
  std::vector<std::int32_t> counts, firsts, lengths;
  std::vector<double> outbox = std::vector<double>(64), inbox, length = std::vector<double>(3000), far = length;
  std::vector<std::int64_t> own = std::vector<std::int64_t>(2), next = own, sum = std::vector<std::int64_t>(1);

  Parts(const Engine& engine, Executable& x) : rank_(engine.rank()), size_(engine.size()) {
    const auto ranks = static_cast<std::size_t>(size_);
    counts.resize(ranks), firsts.resize(ranks), lengths.resize(ranks);
    inbox.resize(20 * ranks);
    x.bind("counts", counts), x.bind("firsts", firsts), x.bind("lengths", lengths);
    x.bind("outbox", outbox), x.bind("inbox", inbox), x.bind("long", length), x.bind("far", far);
    x.bind("own", own), x.bind("next", next), x.bind("sum", sum);
  }
  /// In some runs nothing goes from some ranks to others.
  static std::int32_t count(int from, int to, int run) {
    return (from * 7 + to * 5 + run * 3) % 4 * ((run + to) % 20) / 3;
  }
  static std::int32_t first(int from, int to, int run) { return (from + 2 * to + run) % 40; }
  static double element(int from, std::int64_t k, int run) {
    return 1000.0 * from + static_cast<double>(k) + 0.5 * run;
  }

  void set(int run) {
    for (int to = 0; to < size_; ++to) {
      counts[static_cast<std::size_t>(to)] = count(rank_, to, run);
      firsts[static_cast<std::size_t>(to)] = first(rank_, to, run);
    }
    for (std::size_t k = 0; k < outbox.size(); ++k) outbox[k] = element(rank_, static_cast<std::int64_t>(k), run);
    for (std::size_t k = 0; k < length.size(); ++k) length[k] = element(rank_, static_cast<std::int64_t>(k), run);
    own = {rank_ + 10 * run, rank_ + 100 * run};
    sum[0] = 0;
    std::ranges::fill(inbox, -1.0);
    std::ranges::fill(lengths, -1);
  }
  /// What letters carry, and what goes beside them, whatever becomes of the parts.
  void require_others(int run, std::int64_t factor) const {
    const int before = (rank_ + size_ - 1) % size_;
    for (int from = 0; from < size_; ++from)
      claim(from == rank_ || lengths[static_cast<std::size_t>(from)] == count(from, rank_, run), "a length");
    claim(next[1] == factor * (before + 10 * run) && next[0] == factor * (before + 100 * run), "a product");
    claim(far[2999] == element(before, 2999, run), "what is too long");
    claim(sum[0] == (rank_ + 2 * size_ - 2) % size_ + 10 * run, "the sum");
  }
  void require_parts(int run, bool is_pull) const {
    for (int other = 0; other < size_; ++other) {
      const int from = is_pull ? rank_ : other, to = is_pull ? other : rank_;
      for (int j = 0; other != rank_ && j < 20; ++j) {
        const bool is_there = j < count(from, to, run);
        const double expected = is_there ? element(other, first(from, to, run) + j, run) : -1;
        claim(inbox[static_cast<std::size_t>(20 * other + j)] == expected, "an element of a part");
      }
    }
  }

 private:
  int rank_, size_;
};

/// In run 7 one rank's parts begin outside its buffer.
void run_parts(const std::shared_ptr<transport::Transport>& transport, bool is_pull, const std::string& where) {
  Engine engine(transport);
  Executable x = engine.compile(Plan::parse(plan_of(is_pull, where)));
  Parts parts(engine, x);
  for (int run = 0; run < 12; ++run) {
    const bool is_wrong = run == 7 && engine.size() > 1;
    parts.set(run);
    if (is_wrong && engine.rank() == 1) std::ranges::fill(parts.firsts, 60), std::ranges::fill(parts.counts, 19);
    if (run % 3 == 0) x.set("factor", run + 2);
    const std::string error = error_of([&] {
      if (run % 4 == 1) x.start(), x.wait();
      else x.run();
    });
    claim(error.empty() != is_wrong, "what goes wrong: " + error);
    if (is_wrong) std::ranges::replace(parts.lengths, 19, Parts::count(1, engine.rank(), run));
    parts.require_others(run, run / 3 * 3 + 2);
    if (!is_wrong) parts.require_parts(run, is_pull);
  }
}

}  // namespace

TEST_CASE("letters carry short messages of statements that assign, and no others") {
  const auto plan = std::make_shared<const Plan>(Plan::parse(plan_of(false)));
  on_telling_ranks(3, [&](const std::shared_ptr<transport::Transport>& transport) {
    BoundPlan bound = bind_values({plan, &plan->model()}, {}, transport->rank(), 3).bound;
    Schedule schedule = build_schedule(bound);
    schedule.has_common_phases = true;
    Program program = make_program(std::move(bound), std::move(schedule), {}, jit::Wait::not_at_all);
    open_channels(program, {}, *transport, transport::Clock::now() + std::chrono::minutes(1));
    const int next = (transport->rank() + 1) % 3, before = (transport->rank() + 2) % 3;
    const Enclosed& enclosed = program.statements[1].enclosed;
    claim(enclosed.outgoing.size() == 2 && enclosed.incoming.size() == 2, "a message for each peer");
    for (const EnclosedMessage& m : enclosed.outgoing)
      claim(m.bytes == (m.peer == next ? 32 : 4), "what goes to a peer");
    for (const EnclosedMessage& m : enclosed.incoming) claim(m.bytes == (m.peer == before ? 32 : 4), "what comes");
    std::vector<std::size_t> left;
    for (const StatementProgram& s : program.statements)
      for (const OutgoingMessage& m : s.outgoing) left.push_back(m.bytes);
    std::ranges::sort(left);
    claim(left == std::vector<std::size_t>{8, 24000}, "a sum, and what is too long, have messages of their own");
  });
}

TEST_CASE("what letters carry comes to its places, run after run, whatever becomes of the parts") {
  for (const std::string where : {"", ", (j + other) * 0 == 0"})
    for (const bool is_pull : {false, true})
      for (const int ranks : {1, 2, 3, 5})
        on_telling_ranks(ranks, [&](const auto& transport) { run_parts(transport, is_pull, where); });
}
