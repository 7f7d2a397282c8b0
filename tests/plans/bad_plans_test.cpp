// Every document of tests/plans/bad is wrong in one way, and beside it stands what a user must be told, to the letter.
#include "tests/plans/bad_plans.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <set>

#include "kplan/plan.hpp"

namespace kplan::test {
namespace {

std::string contents_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The whole message about the document, or nothing where it turns out to be right.
std::string message_about(const std::filesystem::path& path) {
  try {
    const Plan plan = Plan::parse(contents_of(path), path.filename().string());
    std::vector<ReferenceRank> world;
    for (std::int64_t r = 0; r < 3; ++r) world.push_back(simple_rank(plan.model(), r, 3));
    run_reference(plan.model(), world);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a wrong plan is told what is wrong, where, and what to do about it", "[plans]") {
  const auto documents = documents_of("bad");
  REQUIRE(documents.size() >= 60);
  for (const auto& path : documents) {
    INFO(path.filename().string());
    auto expected_path = path;
    std::string expected = contents_of(expected_path.replace_extension(".expected"));
    REQUIRE_FALSE(expected.empty());
    if (expected.back() == '\n') expected.pop_back();
    CHECK(message_about(path) == expected);
  }
}

TEST_CASE("a message is one line that ends with its code, and a statement's text underlined below it", "[plans]") {
  for (const auto& path : documents_of("bad")) {
    const std::string message = message_about(path);
    INFO(message);
    const std::string first = message.substr(0, message.find('\n'));
    CHECK(first.find(" [KP-") == first.size() - 10);
    CHECK(first.back() == ']');
    CHECK(first[first.size() - 11] != '.');
    CHECK(first.size() < 1400);
    CHECK(std::none_of(message.begin(), message.end(),
                       [](char c) { return static_cast<unsigned char>(c) < ' ' && c != '\n'; }));
    if (first.size() == message.size()) continue;
    const std::string rest = message.substr(first.size() + 1);
    const std::string carets = rest.substr(rest.find('\n') + 1);
    CHECK(carets.find_first_not_of(" ^") == std::string::npos);
    CHECK(carets.find('^') != std::string::npos);
  }
}

}  // namespace kplan::test
