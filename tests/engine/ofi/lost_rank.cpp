// What the other ranks of a run over libfabric make of one that is killed, stopped, leaves early, never comes, or has
// another size: each gets the error that says so within the time-out, in the very words, can still end in order, and
// nothing is left in /dev/shm.
//   lost_rank WAY [RANKS]     starts so many processes for each victim, and judges how they end
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <regex>

#include "tests/engine/ofi/killed_ranks.hpp"
#include "tests/engine/ofi/ring.hpp"

using namespace kplan;
using namespace kplan::tests;
using transport::Clock;

namespace {

constexpr const char* ways[] = {"kill", "stop", "leave", "return", "no-compile", "no-run", "sizes"};
constexpr int run_of_loss = 200, elements = 1000;

/// What a rank was told, and how long it had waited for it.
struct Told {
  std::string text;
  double seconds = 0;
};

template <class Action>
Told told_by(const Action& action) {
  const Clock::time_point begin = Clock::now();
  Told out;
  try {
    action();
    out.text = "nothing";
  } catch (const std::exception& error) {
    out.text = error.what();
  }
  out.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return out;
}

/// The text with # for a time that a rank measured, if that is about the time-out.
std::string without_measured_time(const std::string& text) {
  static const std::regex waited("waited ([0-9]+\\.[0-9]{3}) s");
  std::smatch match;
  if (!std::regex_search(text, match, waited)) return text;
  const double seconds = std::stod(match[1]);
  if (seconds < timeout_seconds - 0.05 || seconds > timeout_seconds + 1) return text;
  return match.prefix().str() + "waited # s" + match.suffix().str();
}

/// 0 if the rank was told one of these in time.
int check(int rank, const Told& told, double most_seconds, const std::vector<std::string>& expected) {
  show(fmt::format("rank {} after {:.3f} s: {}", rank, told.seconds, told.text));
  const bool is_expected = std::ranges::count(expected, without_measured_time(told.text)) > 0;
  if (is_expected && told.seconds <= most_seconds) return 0;
  std::fprintf(stderr, "rank %d was told after %.3f s: %s\n", rank, told.seconds, told.text.c_str());
  if (!is_expected)
    for (const std::string& each : expected) std::fprintf(stderr, "  expected: %s\n", each.c_str());
  return 1;
}

/// What a rank is told of the victim that is lost in that run, or of those between: it waits in a later run for what
/// its sender does not send, or in an earlier one, where transports need it, for its receiver to take what it was sent.
std::vector<std::string> lost_texts(const std::string& way, int rank, int victim, int ranks, int run_of_fault) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& awaited, int peer, int run) {
    const std::string waits = fmt::format("plan ring, statement pass: rank {} waits for {}", rank, awaited);
    const bool is_silent = way == "stop" || way == "no-run";
    // Who waits for a rank that has given up finds that it has ended, unless rank 0, which would tell, left before it.
    const bool may_not_hear = peer != victim && peer != 0 && rank != 0 && (victim != 0 || way == "return");
    if (is_silent || may_not_hear)
      out.push_back(fmt::format("{}; timed out after {:g} s in run {}; KPLAN_TIMEOUT sets the limit [KP-T004]", waits,
                                timeout_seconds, run));
    if (!is_silent || peer != victim)
      out.push_back(fmt::format("{}; rank {} has ended in run {} [KP-T002]", waits, peer, run));
  };
  const int distance = (rank - victim + ranks) % ranks, sender = (rank + ranks - 1) % ranks;
  const int receiver = (rank + 1) % ranks, last = run_of_fault + distance - 1;
  add(fmt::format("{} bytes from rank {}", 8 * elements, sender), sender, last);
  const int first = run_of_fault + ranks - 1 - distance;
  for (int run = first; run <= std::min(first + 2, last); ++run)
    add(fmt::format("rank {} to take {} bytes", receiver, 8 * elements), receiver, run);
  return out;
}

/// What those that compile are told when one does not, or only when they have given up: the first whose time is over
/// tells the others. Without shared memory, a late one that does not find rank 0 any more knows no more than that.
std::vector<std::string> absent_texts(int rank, int victim, int ranks) {
  std::vector<std::string> out;
  if (rank == victim && rank != 0)
    out.push_back(
        fmt::format("rank {} waits in a collective call for rank 0, which has ended; see what rank 0 reports "
                    "[KP-T002]",
                    rank));
  for (int first = 0; first < ranks; ++first)
    if (first != victim)
      out.push_back(
          fmt::format("rank {} is in a collective call, and rank {} waited # s for rank {} of {} to come to "
                      "it; make the same collective calls in the same order on every rank, or raise "
                      "KPLAN_TIMEOUT [KP-T001]",
                      rank, first, victim, ranks));
  return out;
}

void wait_for_parent() {
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGUSR1);
  int number = 0;
  sigwait(&awaited, &number);
}

/// The plan compiled and bound.
struct Rank {
  Rank(Engine& engine, int size) : ring(engine.compile(tests::ring(), {{"n", size}})) {
    ring.bind("A", a);
    ring.bind("B", b);
  }
  std::vector<double> a = std::vector<double>(elements), b = std::vector<double>(elements);
  Executable ring;
};

/// One rank: a ring of messages until the victim is lost. 0 if the error is as expected.
int take_part(const std::string& way, int victim) {
  Engine engine(ring_transport());
  const int rank = engine.rank(), ranks = engine.size();
  const bool is_victim = rank == victim;
  if (is_victim && way == "no-compile") wait_for_parent();
  if (way == "no-compile")
    return check(rank, told_by([&] { Rank(engine, elements); }), timeout_seconds + 1,
                 absent_texts(rank, victim, ranks));
  Rank self(engine, elements);
  if (is_victim && way == "no-run") {
    wait_for_parent();
    return 0;
  }
  const int run_of_fault = way == "no-run" ? 0 : run_of_loss;
  for (int run = 0; run < run_of_fault; ++run) self.ring.run();
  if (is_victim && way == "kill") raise(SIGKILL);
  if (is_victim && way == "stop") raise(SIGSTOP);
  if (is_victim && way == "leave") std::_Exit(0);
  if (is_victim && way == "return") return 0;
  const Told told = told_by([&] {
    for (int run = 0; run < 100 * run_of_loss; ++run) self.ring.run();
  });
  const std::vector<std::string> texts = lost_texts(way, rank, victim, ranks, run_of_fault);
  const bool may_wait = std::ranges::any_of(texts, [](const auto& each) { return each.ends_with("[KP-T004]"); });
  return check(rank, told, may_wait ? timeout_seconds + 1 : timeout_seconds, texts);
}

/// One rank of those among which the victim has another size. All are told, and all can go on.
int differ(int victim) {
  Engine engine(ring_transport());
  const int rank = engine.rank();
  const auto size_of = [&](int each) { return each == victim ? elements + 1 : elements; };
  const int other = victim == 0 ? 1 : victim;
  int wrong = check(rank, told_by([&] { Rank(engine, size_of(rank)); }), timeout_seconds,
                    {fmt::format("uniform parameter `n` differs between ranks: {} on rank 0, {} on rank {} [KP-A002]",
                                 size_of(0), size_of(other), other)});
  Rank self(engine, elements);
  self.ring.run();
  if (rank == victim) {
    std::vector<double> larger(elements + 1);
    wrong += check(rank, told_by([&] { self.ring.bind("A", larger); }), 0.1,
                   {fmt::format("plan ring: buffer `A` has {} elements of 8 bytes on rank {}, {} bytes; memory of {} "
                                "bytes was given [KP-B022]",
                                elements, rank, 8 * elements, 8 * (elements + 1))});
  }
  std::fill(self.b.begin(), self.b.end(), rank);
  self.ring.run();
  const int sender = (rank + engine.size() - 1) % engine.size();
  if (std::ranges::count(self.a, sender) == elements) return wrong;
  std::fprintf(stderr, "rank %d: the run after the errors has wrong results\n", rank);
  return wrong + 1;
}

/// How those that lose the victim end.
int judge(const std::string& way, int victim, const std::vector<pid_t>& children) {
  const pid_t lost = children[static_cast<std::size_t>(victim)];
  int wrong = 0;
  const auto expect = [&](int rank, bool is_right, int status) {
    if (is_right) return;
    std::fprintf(stderr, "%s of rank %d: rank %d ends with status %x\n", way.c_str(), victim, rank, status);
    ++wrong;
  };
  for (int rank = 0; rank < static_cast<int>(children.size()); ++rank) {
    if (rank == victim) continue;
    const int status = status_of(children[static_cast<std::size_t>(rank)]);
    expect(rank, WIFEXITED(status) && WEXITSTATUS(status) == 0, status);
  }
  if (way == "stop") ::kill(lost, SIGKILL);
  ::kill(lost, SIGUSR1);
  const int status = status_of(lost);
  const bool is_killed = way == "kill" || way == "stop";
  expect(victim, is_killed ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0, status);
  return wrong;
}

/// One set of ranks for each victim, at the same time: they mostly wait.
int judge_all(const char* program, const std::string& way, int ranks) {
  const std::set<std::string> files = shared_files();
  const std::vector<int> ports = free_ports(ranks);
  std::vector<std::vector<pid_t>> sets;
  for (int victim = 0; victim < ranks; ++victim)
    sets.push_back(
        start_ranks({program, way, "rank", std::to_string(victim)}, ranks, ports[static_cast<std::size_t>(victim)]));
  int wrong = 0;
  for (int victim = 0; victim < ranks; ++victim) wrong += judge(way, victim, sets[static_cast<std::size_t>(victim)]);
  return wrong + files_left(files);
}

int be_rank(const std::string& way, int victim) {
  try {
    return way == "sizes" ? differ(victim) : take_part(way, victim);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "not expected: %s\n", error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string way = argc > 1 ? argv[1] : "";
  if (way == "all") return all_killed(argc, argv);
  if (argc == 4 && std::strcmp(argv[2], "rank") == 0) return be_rank(way, std::atoi(argv[3]));
  if (std::ranges::count(ways, way) == 0) {
    std::fprintf(stderr, "usage: lost_rank kill|stop|leave|return|no-compile|no-run|sizes|all [RANKS]\n");
    return 2;
  }
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 3;
  const int wrong = judge_all(argv[0], way, ranks);
  if (wrong == 0) std::printf("%s: all as it should be, whichever of %d ranks it is\n", way.c_str(), ranks);
  return wrong > 0 ? 1 : 0;
}
