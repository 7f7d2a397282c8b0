// Claims of corresponding knowledge that are wrong between two ranks: all say the same, also where these two alone tell
// each other what they have found.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>
#include <utility>
#include <vector>

#include "tests/engine/on_ranks.hpp"

using namespace kplan;

namespace {

using RankCounts = std::map<int, std::int64_t>;

/// What all of `ranks` ranks say to a plan in which each sends as many elements to the next as it expects from the one
/// before: `most` of them, but for ranks with other counts, `first` in the first statement, `second` in another one
/// between ranks with even numbers, and between those with odd ones.
std::vector<std::string> refusals_on(int ranks, std::int64_t most, const RankCounts& first, const RankCounts& second) {
  const Plan plan = Plan::parse(
      R"({"kplan": 1, "name": "rings", "parameters": {"i": {"type": "i64", "scope": "private"}, "j": {"type": "i64", "scope": "private"}},
    "buffers": {"A": {"type": "f64", "shape": [9]}, "B": {"type": "f64", "shape": [9]}, "C": {"type": "f64", "shape": [9]}},
    "groups": {"half": {"color": "rank % 2", "key": "rank"}},
    "statements": [{"name": "round", "knowledge": "corresponding", "communicate": "A[k]@(rank + 1) % size <<= B[k]@rank where k in {0 ... i - 1}"},
                   {"name": "half", "in": "half", "knowledge": "corresponding", "communicate": "C[k]@(rank + 1) % size <<= B[k]@rank where k in {0 ... j - 1}"}]})");
  const auto count = [&](const RankCounts& counts, int rank) {
    const auto found = counts.find(rank);
    return found != counts.end() ? found->second : most;
  };
  std::vector<std::string> said(static_cast<std::size_t>(ranks));
  tests::on_ranks(ranks, [&](Engine& engine) {
    const int rank = engine.rank();
    said[static_cast<std::size_t>(rank)] = tests::error_of([&] {
      engine.compile(plan, {{"i", count(first, rank)}, {"j", count(second, rank)}});
    });
  });
  return said;
}

std::string differs(const std::string& statement, int sender, int sent, int receiver, int expected) {
  return fmt::format(
      "statement {}: rank {} sends {} elements to rank {}, which expects {}; the claim of corresponding "
      "knowledge is wrong [KP-A003]",
      statement, sender, sent, receiver, expected);
}

void check_all_say(const std::vector<std::string>& said, const std::string& what) {
  for (const std::string& text : said) CHECK(text == said[0]);
  CHECK_THAT(said[0], Catch::Contains(what));
}

}  // namespace

TEST_CASE("all ranks name the first message whose ends differ, by statement, sender and receiver") {
  for (const int ranks : {5, 34}) {
    const int last = ranks - 1;
    check_all_say(refusals_on(ranks, 3, {{3, 2}}, {}), differs("round", 2, 3, 3, 2));
    check_all_say(refusals_on(ranks, 3, {{0, 2}}, {{2, 1}}), differs("round", 0, 2, 1, 3));
    check_all_say(refusals_on(ranks, 3, {{last, 4}}, {{2, 1}}), differs("round", last - 1, 3, last, 4));
    check_all_say(refusals_on(ranks, 3, {}, {{2, 1}}), differs("half", 0, 3, 2, 1));
  }
}

TEST_CASE("a message that only its sender or only its receiver knows of is a wrong claim") {
  for (const int ranks : {5, 34}) {
    check_all_say(refusals_on(ranks, 3, {{3, 0}}, {}), differs("round", 2, 3, 3, 0));
    check_all_say(refusals_on(ranks, 0, {{3, 2}}, {}), differs("round", 2, 0, 3, 2));
  }
}

TEST_CASE("claims that are right are no error, and what keeps a rank from compiling is one before wrong claims") {
  for (const int ranks : {5, 34}) {
    for (const std::int64_t most : {0, 3})
      CHECK(refusals_on(ranks, most, {}, {}) == std::vector<std::string>(static_cast<std::size_t>(ranks)));
    std::vector<std::string> said = refusals_on(ranks, 3, {{1, 2}, {3, 10}}, {});
    const std::string of_rank_3 = std::exchange(said[3], "rank 3: " + said[3]);
    CHECK_THAT(of_rank_3, Catch::Contains("[KP-") && !Catch::Contains("KP-A003"));
    check_all_say(said, of_rank_3);
  }
}
