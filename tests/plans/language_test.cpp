// What plans/language.md says is so: its plans are read, its statements run, its errors met, its values worked out.
//
// Its fenced blocks are `json`, whole plans, the first with the declarations that all else is over; `kplan`, a
// statement a line; `kplan-error`, a statement and the code that it is told; `kplan-value`, an expression and what it
// is. What stands behind `kplan` or `kplan-error` are further members of the statement.
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "engine/analysis/knowledge.hpp"
#include "kplan/plan.hpp"
#include "plans/evaluate.hpp"
#include "tests/plans/bad_plans.hpp"

namespace kplan::test {
namespace {

struct FencedBlock {
  std::string kind, members;
  std::vector<std::string> lines;
};

std::vector<FencedBlock> fenced_blocks() {
  std::ifstream page(std::string(KPLAN_SOURCE_DIR) + "/plans/language.md");
  REQUIRE(page);
  std::vector<FencedBlock> out;
  bool is_inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("```")) {
      is_inside = !is_inside;
      const std::size_t blank = line.find(' ');
      if (is_inside)
        out.push_back({line.substr(3, blank - 3), blank == std::string::npos ? "" : line.substr(blank), {}});
    } else if (is_inside) {
      out.back().lines.push_back(line);
    }
  }
  REQUIRE_FALSE(is_inside);
  return out;
}

std::string whole_text(const FencedBlock& block) {
  std::string out;
  for (const std::string& line : block.lines) out += line + "\n";
  return out;
}

/// The line's last word, and what stands before it without the blanks between.
std::pair<std::string, std::string> last_word_apart(const std::string& line) {
  const std::size_t begin = line.rfind(' ') + 1;
  return {line.substr(0, line.find_last_not_of(' ', begin - 1) + 1), line.substr(begin)};
}

/// The page's declarations, with this statement alone.
Plan plan_with(const FencedBlock& declarations, const std::string& statement, const std::string& members) {
  std::string document = whole_text(declarations);
  document.resize(document.rfind("\"statements\""));
  document += R"("statements": [{"communicate": ")" + statement + "\"" + (members.empty() ? "" : "," + members) + "}]}";
  return Plan::parse(document, "language.md");
}

/// The code that the statement is told when it is read, when its knowledge is inferred, or when it runs on four ranks.
std::string code_told(const FencedBlock& declarations, const std::string& statement, const std::string& members) {
  try {
    const Plan plan = plan_with(declarations, statement, members);
    infer_knowledge(plan.model(), plan.model().statements[0]);
    std::vector<ReferenceRank> world;
    for (std::int64_t r = 0; r < 4; ++r) world.push_back(simple_rank(plan.model(), r, 4));
    run_reference(plan.model(), world);
  } catch (const Error& e) {
    UNSCOPED_INFO(e.what());
    return e.code();
  }
  return "none";
}

}  // namespace

TEST_CASE("the language page's plans, statements, errors and values are what it says", "[plans][language]") {
  const auto blocks = fenced_blocks();
  REQUIRE_FALSE(blocks.empty());
  REQUIRE(blocks[0].kind == "json");
  const FencedBlock& declarations = blocks[0];
  std::map<std::string, int> counts;
  for (const FencedBlock& block : blocks) {
    if (block.kind == "json") {
      ++counts["json"];
      INFO(whole_text(block));
      CHECK_NOTHROW(Plan::parse(whole_text(block)));
      continue;
    }
    for (const std::string& line : block.lines) {
      INFO(line);
      ++counts[block.kind];
      if (block.kind == "kplan") {
        CHECK(code_told(declarations, line, block.members) == "none");
        continue;
      }
      const auto [text, expected] = last_word_apart(line);
      if (block.kind == "kplan-error") {
        CHECK(code_told(declarations, text, block.members) == expected);
        continue;
      }
      REQUIRE(block.kind == "kplan-value");
      const Plan plan = Plan::parse(whole_text(declarations));
      const ExprPtr e = check_free_expression(plan.model(), {text, {}}, {}, Scalar::f64);
      CHECK(to_text(convert(evaluate(*e, {}), Scalar::f64)) == expected);
    }
  }
  CHECK(counts["json"] == 2);
  CHECK(counts["kplan"] >= 30);
  CHECK(counts["kplan-error"] >= 30);
  CHECK(counts["kplan-value"] >= 15);
}

TEST_CASE("the language page has all types, functions and operators", "[plans][language]") {
  std::ifstream file(std::string(KPLAN_SOURCE_DIR) + "/plans/language.md");
  std::ostringstream page;
  page << file.rdbuf();
  std::string types;
  for (int k = 0; k <= static_cast<int>(Scalar::c128); ++k)
    types += (k ? " " : "") + std::string(name_of(static_cast<Scalar>(k)));
  CHECK(page.str().find(types) != std::string::npos);
  // Unknown ones are told what there is.
  const FencedBlock declarations = fenced_blocks().at(0);
  for (const std::string statement : {"A[0]@0 << unheard_of << B[0]@1", "A[0]@0 <<= unheard_of(B[0])@1"}) {
    std::string message;
    try {
      plan_with(declarations, statement, "");
    } catch (const PlanError& e) {
      message = e.what();
    }
    const std::size_t begin = message.find("there are ");
    REQUIRE(begin != std::string::npos);
    const std::string names = message.substr(begin + 10, message.find(" [KP-") - begin - 10);
    const std::regex name("[a-z_0-9]+");
    CHECK(std::distance(std::sregex_iterator(names.begin(), names.end(), name), {}) > 10);
    for (std::sregex_iterator it(names.begin(), names.end(), name), end; it != end; ++it) {
      INFO(it->str());
      CHECK(std::regex_search(page.str(), std::regex("\\b" + it->str() + "\\b")));
    }
  }
}

}  // namespace kplan::test
