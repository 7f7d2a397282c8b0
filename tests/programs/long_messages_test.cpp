// Long messages that lie in one region of ordinary memory, again and again: whichever way they go, with some ranks
// late, and some runs started and waited for later.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <string_view>
#include <thread>

#include "tests/programs/on_ranks.hpp"

using namespace kplan;
using namespace kplan::programs;

namespace {

constexpr std::int64_t n = 12000;  ///< 96 KB, three pieces by default

double value(std::int64_t run, int rank, std::int64_t k) {
  return static_cast<double>(run * 1000 + rank * 100000) + static_cast<double>(k % 977);
}

/// Makes runs of a plan from `sent` to `received`; `is_right` looks at what has come.
template <class IsRight>
void repeat(Engine& engine, const std::string& communicate, bool is_fresh, std::int64_t rows_sent,
            std::int64_t rows_received, const IsRight& is_right) {
  PlanBuilder builder("long-messages");
  builder.parameter("n", Scalar::i64);
  builder.buffer("sent", Scalar::f64, {std::to_string(rows_sent), "n"});
  builder.buffer("received", Scalar::f64, {std::to_string(rows_received), "n"});
  auto statement = builder.communicate("pass", communicate);
  if (is_fresh) statement.fresh();
  Executable executable = engine.compile(builder.build(), {{"n", n}});
  std::vector<double> sent(static_cast<std::size_t>(rows_sent * n)),
      received(static_cast<std::size_t>(rows_received * n));
  executable.bind("sent", sent);
  executable.bind("received", received);
  for (std::int64_t run = 0; run < 40; ++run) {
    for (std::size_t k = 0; k < sent.size(); ++k) sent[k] = value(run, engine.rank(), static_cast<std::int64_t>(k));
    // Long enough for the others to take back what they have lent.
    if (run % 9 == 5 && run % engine.size() == engine.rank()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (run % 5 == 4) {
      executable.start();
      executable.wait();
    } else {
      executable.run();
    }
    std::ranges::fill(sent, -1.0);  // its memory is the program's again
    claim(is_right(received, run), communicate);
  }
}

}  // namespace

TEST_CASE("long messages in one region come whole, whichever way they go") {
  on_ranks([](Engine& engine) {
    const int size = engine.size(), rank = engine.rank();
    repeat(engine, "received@(i + 1) % size <<= sent@i where i in world", false, 1, 1,
           [&](const std::vector<double>& received, std::int64_t run) {
             for (std::int64_t k = 0; k < n; ++k)
               if (received[static_cast<std::size_t>(k)] != value(run, (rank + size - 1) % size, k)) return false;
             return true;
           });
    repeat(engine, "received[i, :]@j <<= sent[j, :]@i where i in world, j in world", false, size, size,
           [&](const std::vector<double>& received, std::int64_t run) {
             for (std::int64_t k = 0; k < size * n; ++k)
               if (received[static_cast<std::size_t>(k)] != value(run, static_cast<int>(k / n), rank * n + k % n))
                 return false;
             return true;
           });
    repeat(engine, "received[i, :]@j <<= sent[0, :]@i where i in world, j in world", false, 1, size,
           [&](const std::vector<double>& received, std::int64_t run) {
             for (std::int64_t k = 0; k < size * n; ++k)
               if (received[static_cast<std::size_t>(k)] != value(run, static_cast<int>(k / n), k % n)) return false;
             return true;
           });
  });
}

TEST_CASE("long messages in one region are summed, whichever way they go") {
  on_ranks([](Engine& engine) {
    const int size = engine.size(), rank = engine.rank();
    repeat(engine, "received[0, :]@i << sum << sent[i, :]@j where i in world, j in world", true, size, 1,
           [&](const std::vector<double>& received, std::int64_t run) {
             for (std::int64_t k = 0; k < n; ++k) {
               double total = 0;
               for (int j = 0; j < size; ++j) total += value(run, j, rank * n + k);
               if (received[static_cast<std::size_t>(k)] != total) return false;
             }
             return true;
           });
    repeat(engine, "received@i << sum << sent@j where i in world, j in world", true, 1, 1,
           [&](const std::vector<double>& received, std::int64_t run) {
             for (std::int64_t k = 0; k < n; ++k) {
               double total = 0;
               for (int j = 0; j < size; ++j) total += value(run, j, k);
               if (received[static_cast<std::size_t>(k)] != total) return false;
             }
             return true;
           });
  });
}

TEST_CASE("long messages of blocks go from and to the memory that is bound, whichever way they go") {
  on_ranks([](Engine& engine) {
    PlanBuilder builder("blocks");
    builder.buffer("sent", Scalar::f64, {"1000", "8"}).buffer("received", Scalar::f64, {"1000", "9"});
    builder.communicate("pass",
                        "received[k, 0:5]@(i + 1) % size <<= sent[k, 3:8]@i where i in world, k in range(1000)");
    Executable executable = engine.compile(builder.build());
    const int sender = (engine.rank() + engine.size() - 1) % engine.size();
    std::vector<std::vector<double>> sent(2, std::vector<double>(8000)), received(2, std::vector<double>(9000));
    for (std::int64_t run = 0; run < 40; ++run) {
      const auto which = static_cast<std::size_t>(run / 3 % 2);
      std::vector<double>&from = sent[which], &to = received[which];
      if (run % 3 == 0) {
        executable.bind("sent", from);
        executable.bind("received", to);
      }
      for (std::size_t k = 0; k < from.size(); ++k) from[k] = value(run, engine.rank(), static_cast<std::int64_t>(k));
      executable.run();
      for (std::int64_t k = 0; k < 5000; ++k)
        claim(to[static_cast<std::size_t>(k / 5 * 9 + k % 5)] == value(run, sender, k / 5 * 8 + 3 + k % 5),
              "a block comes");
    }
  });
}

TEST_CASE("long messages of planes go from and to the ones that a run means, whichever way they go") {
  // Blocks and whole lines, from one time level to the next; and a sweep over more planes than are kept in mind.
  struct Case {
    const char* communicate;
    std::int64_t levels;
  };
  constexpr std::int64_t rows = 1000, columns = 8;
  for (const auto& [communicate, levels] :
       {Case{"u[(t + 1) % 2, :, 0:3]@(r + 1) % size <<= u[t % 2, :, 3:6]@r where r in world", 2},
        Case{"u[(t + 1) % 2, :, :]@(r + 1) % size <<= u[t % 2, :, :]@r where r in world", 2},
        Case{"u[t, :, 0:3]@(r + 1) % size <<= u[t, :, 3:6]@r where r in world", 7}})
    on_ranks([&](Engine& engine) {
      PlanBuilder builder("planes");
      builder.parameter("t", Scalar::i64, Scope::uniform, Time::varying);
      builder.buffer("u", Scalar::f64, {std::to_string(levels), std::to_string(rows), std::to_string(columns)});
      builder.communicate("pass", communicate);
      Executable executable = engine.compile(builder.build(), {{"t", 0}});
      constexpr std::int64_t plane = rows * columns;
      std::vector<double> u(static_cast<std::size_t>(levels * plane));
      executable.bind("u", u);
      const int sender = (engine.rank() + engine.size() - 1) % engine.size();
      for (std::int64_t run = 0; run < 80; ++run) {
        for (std::size_t k = 0; k < u.size(); ++k) u[k] = value(run, engine.rank(), static_cast<std::int64_t>(k));
        const std::int64_t from = run % levels, to = levels == 2 ? 1 - from : from;
        executable.set("t", levels == 2 ? run : from);
        executable.run();
        const bool are_lines = std::string_view(communicate).find(", :, :]") != std::string_view::npos;
        for (std::int64_t k = 0; k < std::ssize(u); ++k) {
          const bool is_sent = k / plane == to && (are_lines || k % columns < 3);
          const std::int64_t source = k % plane + from * plane + (are_lines ? 0 : 3);
          claim(u[static_cast<std::size_t>(k)] == (is_sent ? value(run, sender, source) : value(run, engine.rank(), k)),
                communicate);
        }
      }
    });
}
