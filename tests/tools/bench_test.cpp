// What kplan-bench makes of measurements, and what its checks see, without any rank but this one.
#include <catch2/catch.hpp>

#include "tools/bench/exchange/moved_numbers.hpp"
#include "tools/bench/results.hpp"

using namespace kplan::bench;

namespace {

Result row(const std::string& method, double median, double uncertainty = 0) {
  Result out;
  out.workload = "w";
  out.variant = "warm";
  out.method = method;
  out.measured.us = {median, median, median, uncertainty};
  return out;
}

/// An array of six doubles, whose first three go to the last three in another order, on this rank.
Exchange turned(std::vector<double>& memory, Combine combine) {
  Exchange out;
  out.arrays = {{kplan::Scalar::f64, {6}, reinterpret_cast<std::byte*>(memory.data())}};
  out.combine = combine;
  out.receives = {{0, 0, {Nest{0, 3, {{3, 1}}, {}, {}}}, {IndexList{0, {2, 0, 1}}}}};
  return out;
}

}  // namespace

TEST_CASE("ratios are to the row kplan, not to another of kplan's") {
  std::vector<Result> rows{row("kplan, allocated", 1), row("hand", 2)};
  compare(rows);
  CHECK(rows[1].ratio == 0);
  rows.push_back(row("kplan", 4));
  compare(rows);
  CHECK(rows[1].ratio == 0.5);
}

TEST_CASE("a wrong method is neither the best nor in the summary") {
  std::vector<Result> rows{row("kplan", 2), row("hand", 1), row("types", 4)};
  rows[1].is_wrong = true;
  compare(rows);
  CHECK_FALSE(rows[1].is_best_other);
  CHECK(rows[2].is_best_other);
  CHECK(summary(rows).find("2.00 (1, 0, 0, 0)") != std::string::npos);
  CHECK(table(rows).find("WRONG") != std::string::npos);
  CHECK(document(rows)["results"][1]["wrong"] == true);
  rows[0].is_wrong = true;
  compare(rows);
  CHECK(rows[2].ratio == 0);
  CHECK(summary(rows).empty());
}

TEST_CASE("what is unsure counts in the summary where it is clear all the same") {
  const auto counted = [](double other, double uncertainty) {
    std::vector<Result> rows{row("kplan", 1), row("hand", other, uncertainty)};
    compare(rows);
    const std::string text = summary(rows);
    return text.substr(text.rfind('('), text.rfind(')') + 1 - text.rfind('('));
  };
  CHECK(counted(1.2, 0.01) == "(1, 0, 0, 0)");
  CHECK(counted(1.2, 0.3) == "(0, 0, 0, 1)");
  CHECK(counted(3, 0.3) == "(1, 0, 0, 0)");
  CHECK(counted(1.02, 0.01) == "(0, 1, 0, 0)");
  CHECK(counted(0.5, 0.01) == "(0, 0, 1, 0)");
  CHECK(counted(0.5, 0.3) == "(0, 0, 1, 0)");
}

TEST_CASE("a median of less than six samples is unsure") {
  CHECK(summarise({1, 1, 1, 1, 1}).is_unsure());
  CHECK_FALSE(summarise({1, 1, 1, 1, 1, 1, 1}).is_unsure());
}

TEST_CASE("lists made of runs of one length become lists of runs with the same elements") {
  const Region list{IndexList{0, {8, 9, 10, 11, 0, 1, 2, 3, 20, 21}, 2, 1, 2}};
  const Region runs = in_runs(list);
  REQUIRE(runs.size() == 2);
  CHECK(std::get<IndexList>(runs[0]).block == 8);
  CHECK(std::get<IndexList>(runs[1]).block == 4);
  const auto expected = elements_of(list), got = elements_of(runs);
  CHECK(std::ranges::equal(expected, got, [](const Element& a, const Element& b) { return a.number == b.number; }));
  CHECK(std::get<IndexList>(in_runs({IndexList{0, {0, 1, 3, 5}}})[0]).block == 1);
  CHECK(std::get<IndexList>(in_runs({IndexList{0, {0, 1, 2, 3}, 3, 0, 1}})[0]).block == 1);  // blocks with gaps
}

TEST_CASE("contents of the run before are seen, as is what a sum leaves out") {
  for (const Combine combine : {Combine::assign, Combine::sum}) {
    std::vector<double> memory(6);
    const auto exchange = std::make_shared<const Exchange>(turned(memory, combine));
    const MovedNumbers numbers(exchange);
    const auto run = [&] {
      for (std::size_t k = 0; k < 3; ++k) {
        const double value = memory[std::vector<std::size_t>{2, 0, 1}[k]];
        memory[3 + k] = value + (combine == Combine::sum ? memory[3 + k] : 0);
      }
    };
    fill(*exchange, 1);
    run();
    CHECK(numbers.difference(1).empty());
    numbers.fill_places(1);
    CHECK(change(*exchange, 1).empty());
    memory[0] += 1;
    CHECK_FALSE(change(*exchange, 1).empty());
    fill(*exchange, 1);
    run();
    numbers.fill_sent(2);
    CHECK_FALSE(numbers.difference(2).empty());
  }
}
