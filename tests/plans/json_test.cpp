// Plans as JSON (language.md section 7): every key, round trips, the taken-apart form, limits.
#include <catch2/catch.hpp>
#include <filesystem>

#include "kplan/plan.hpp"
#include "plans/json_reader.hpp"
#include "tests/plans/bad_plans.hpp"
#include "tests/plans/simulated_ranks.hpp"

namespace kplan::test {
namespace {

std::string code_of(const std::string& json) {
  try {
    Plan::parse(json);
  } catch (const Error& e) {
    return e.code();
  }
  return "";
}

const std::string good_folder = std::string(KPLAN_SOURCE_DIR) + "/tests/plans/good";

std::string minimal(const std::string& statements, const std::string& before = "") {
  return R"({"kplan": 1, "name": "m", )" + before +
         R"("buffers": {"A": {"type": "f64", "shape": [4]}, "B": {"type": "f64", "shape": [4]}}, "statements": [)" +
         statements + "]}";
}
const std::string copy = R"({"communicate": "A@i <<= B@i where i in world"})";

}  // namespace

TEST_CASE("every key of the format is read into the model", "[plans][json]") {
  const Plan plan = Plan::parse_file(good_folder + "/everything.json");
  const PlanModel& m = plan.model();
  CHECK(plan.name() == "everything");

  REQUIRE(m.types.size() == 2);
  const ElementType& particle = m.types[0].second;
  CHECK(particle.fields == std::vector<Field>{{"mass", Scalar::f64, 0}, {"id", Scalar::i32, 8}});
  CHECK(particle.size_bytes == 16);
  const ElementType& located = m.types[1].second;
  CHECK(located.fields == std::vector<Field>{{"value", Scalar::f32, 4}, {"index", Scalar::i32, 0}});
  CHECK(located.size_bytes == 16);

  REQUIRE(m.parameters.size() == 5);
  CHECK(m.parameters[0].name == "n");
  CHECK(m.parameters[0].type == Scalar::i64);
  CHECK(m.parameters[0].is_uniform);
  CHECK_FALSE(m.parameters[0].is_varying);
  CHECK_FALSE(m.parameters[0].default_value);
  CHECK(m.parameters[1].type == Scalar::i32);
  CHECK_FALSE(m.parameters[1].is_uniform);
  CHECK(m.parameters[1].default_value == convert(ScalarValue::integer(2), Scalar::i32));
  CHECK(m.parameters[2].is_varying);
  CHECK(m.parameters[2].default_value == convert(ScalarValue::real(0.5), Scalar::f32));
  CHECK(m.parameters[3].default_value == ScalarValue::boolean(true));
  const double w[] = {1, -2.5};
  CHECK(m.parameters[4].default_value == ScalarValue::load(Scalar::c128, w));

  REQUIRE(m.buffers.size() == 8);
  CHECK(m.buffers[0].shape.size() == 2);
  CHECK(m.buffers[0].strides.empty());
  CHECK_FALSE(m.buffers[0].is_uniform);
  CHECK(m.buffers[0].is_varying);
  CHECK(m.buffers[1].strides.size() == 2);
  CHECK(m.buffers[2].shape.empty());
  CHECK_FALSE(m.buffers[3].is_varying);
  CHECK(m.buffers[4].is_uniform);
  CHECK(m.buffers[4].is_varying);
  CHECK(m.buffers[5].type == particle);
  CHECK(m.buffers[7].type.size_bytes == 24);

  REQUIRE(m.groups.size() == 2);
  CHECK(m.groups[0].key_text.text == "-rank");
  CHECK(m.groups[1].key_text.text == "rank");

  REQUIRE(m.statements.size() == 5);
  CHECK(m.statements[0].group == 0);
  CHECK_FALSE(m.statements[0].is_pull);
  CHECK_FALSE(m.statements[0].is_fresh);
  CHECK_FALSE(m.statements[0].is_any_order);
  CHECK_FALSE(m.statements[0].claimed);
  CHECK(m.statements[1].name == "1");
  CHECK(m.statements[1].group == -1);
  CHECK(m.statements[1].is_fresh);
  CHECK(m.statements[1].is_any_order);
  CHECK(m.statements[2].is_pull);
  CHECK(m.statements[2].claimed == KnowledgeClass::receiver);
  CHECK(m.statements[3].reductions.size() == 3);
  CHECK_FALSE(m.statements[4].is_any_order);
}

TEST_CASE("a native operator is taken as such", "[plans][json]") {
  const Plan plan =
      Plan::parse(minimal(R"({"communicate": "A@0 << mine << B@0"})",
                          R"("operators": {"mine": {"native": true, "associative": false, "commutative": false}}, )"));
  CHECK(plan.model().statements[0].reductions[0].is_native);
  CHECK_FALSE(plan.model().source.operators[0].is_associative);
  CHECK_FALSE(plan.model().source.operators[0].is_commutative);
}

TEST_CASE("a plan that is printed and read again is the same plan", "[plans][json]") {
  auto documents = documents_of("good");
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(KPLAN_SOURCE_DIR) / "plans/examples"))
    if (entry.path().extension() == ".json" && entry.path().stem().extension() != ".data")
      documents.push_back(entry.path());
  REQUIRE_FALSE(documents.empty());
  for (const auto& path : documents) {
    INFO(path.string());
    const Plan plan = Plan::parse_file(path.string());
    const std::string printed = plan.to_json();
    const Plan again = Plan::parse(printed);
    CHECK(again.to_json() == printed);
    CHECK(again.digest() == plan.digest());
    CHECK(plan.digest().size() == 32);
  }
}

TEST_CASE("plans that differ have other digests", "[plans][json]") {
  CHECK(Plan::parse(minimal(copy)).digest() ==
        Plan::parse(minimal(R"({"communicate":"A@i<<=B@i where i in world"})")).digest());
  CHECK(Plan::parse(minimal(copy)).digest() !=
        Plan::parse(minimal(R"({"communicate": "A@i <<= B@i where i in world, i > 0"})")).digest());
}

TEST_CASE("the taken-apart form is the same statement", "[plans][json]") {
  const auto same = [](const std::string& text, const std::string& parts, const std::string& before = "") {
    const Plan a = Plan::parse(minimal(R"({"communicate": ")" + text + "\"}", before)),
               b = Plan::parse(minimal(R"({"communicate": )" + parts + "}", before));
    CHECK(a.to_json() == b.to_json());
    CHECK(a.digest() == b.digest());
  };
  same("A[j]@i <<= B[i]@j where i in world, j in world, i % 2 == 0",
       R"({"reductions": [{"place": "A[j]", "receiver": "i", "operator": "assign", "value": "B[i]", "sender": "j"}],
           "where": [{"names": ["i"], "in": "world"}, {"names": ["j"], "in": "world"}, {"filter": "i % 2 == 0"}]})");
  same(
      "A[0]@0 << sum << 1@2, A[1]@0 <<= B[k]@0 where i, j in {0 ... 3 by 2}, k = i * (j + 1) % 4, (flag), g in "
      "range(2)",
      R"j({"reductions": [{"place": "A[0]", "receiver": 0, "operator": "sum", "value": 1, "sender": 2}, {"place": "A[1]", "receiver": "0", "value": "B[k]", "sender": "0"}],
           "where": [{"names": ["i", "j"], "in": "{0...3 by 2}"}, {"name": "k", "is": "i*(j+1) % 4"}, {"filter": "flag"}, {"names": ["g"], "in": "range(0, 2)"}]})j",
      R"("parameters": {"flag": "bool"}, )");
  same(
      "A@i <<= B@j where i in world, j = 0",
      R"({"reductions": [{"place": "A", "receiver": "i", "value": "B", "sender": "j"}], "where": [{"names": ["i"], "in": "world"}, {"name": "j", "is": 0}]})");
}

TEST_CASE("a filter that is a bare name stays a filter in front of a generator", "[plans][json]") {
  const Plan plan = Plan::parse(minimal(
      R"({"communicate": {"reductions": [{"place": "A", "receiver": "i", "value": "B", "sender": "i"}], "where": [{"filter": "flag"}, {"filter": "true"}, {"names": ["i"], "in": "world"}]}})",
      R"("parameters": {"flag": "bool"}, )"));
  CHECK(plan.model().statements[0].clauses.size() == 3);
  CHECK(Plan::parse(plan.to_json()).digest() == plan.digest());
}

TEST_CASE("an error in a text points into the document, with its line and column", "[plans][json]") {
  const auto message = [](const std::string& json) {
    try {
      Plan::parse(json, "halo.json");
    } catch (const PlanError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(message("{\"kplan\": 1, \"name\": \"x\",\n \"statements\": [\n  {\"communicate\": \"u@0 <<= 1@0\"}]}") ==
        "halo.json:3:20 /statements/0/communicate: `u` is not declared [KP-P005]\n    u@0 <<= 1@0\n    ^");
  // Behind an escape the column of the string is given, since the column inside it is another one.
  CHECK(message("{\"kplan\": 1, \"name\": \"x\", \"statements\": [{\"communicate\": \"a@0\\n <<= @0\"}]}")
            .starts_with("halo.json:1:58 "));
  CHECK(message("{\"kplan\": 1, \"name\": \"x\", \"statements\": [{\"communicate\": \"\\u0061@0 <<= @0\"}]}")
            .starts_with("halo.json:1:58 "));
  CHECK(message("{\"kplan\": 1, \"name\": \"x\", \"statements\": [{\"communicate\": \"a@0 <<= @\\u0061\"}]}")
            .starts_with("halo.json:1:67 "));
  CHECK(message(minimal(copy, R"("a/b~c": 1, )")).find("/a~1b~0c: the key `a/b~c` is not known here") !=
        std::string::npos);
}

TEST_CASE("documents beyond the limits are refused, quickly", "[plans][json]") {
  CHECK(code_of(std::string((16u << 20) + 1, ' ')) == "KP-J002");
  CHECK(code_of(std::string(1u << 20, '[')) == "KP-J004");
  CHECK(code_of(std::string(1u << 20, '\n')) == "KP-J003");
  std::string keys = "{", values = "[";
  for (int k = 0; k <= 10'000; ++k) keys += "\"k" + std::to_string(k) + "\":0,";
  CHECK(code_of(keys) == "KP-J004");
  for (int k = 0; k <= 2'000'000; ++k) values += "0,";
  CHECK(code_of(values) == "KP-J004");
  std::string parameters;
  for (int k = 0; k < 1025; ++k) parameters += (k ? ", \"p" : "\"p") + std::to_string(k) + "\": \"i64\"";
  CHECK(code_of(minimal(copy, "\"parameters\": {" + parameters + "}, ")) == "KP-P040");
  std::string statements = copy;
  for (int k = 0; k < 4096; ++k) statements += "," + copy;
  CHECK(code_of(minimal(statements)) == "KP-P040");
}

TEST_CASE("a key that stands twice is found among ten thousand, and one in another object is none", "[plans][json]") {
  std::string object;
  for (int k = 0; k < 9'999; ++k) object += (k ? ",\"" : "{\"") + std::to_string(k) + "\":{\"0\":0}";
  CHECK(code_of(object + ",\"5000\":0}") == "KP-J005");
  CHECK(code_of(object + "}") == "KP-J011");
}

TEST_CASE("statements, shapes and operators together have a bounded number of nodes", "[plans][json]") {
  std::string sum = "B[0]";
  for (int k = 0; k < 6; ++k) sum = "(" + sum + ") + (" + sum + ")";  // 64 elements, 191 nodes with their subscripts
  std::string statements;
  for (int k = 0; k < 1500; ++k)
    statements += std::string(k ? ", " : "") + R"({"communicate": "A[0]@0 <<= )" + sum + "@0\"}";
  CHECK(code_of(minimal(statements)) == "KP-P040");
  std::string extent = "1";
  for (int k = 0; k < 9; ++k) extent = "(" + extent + ") * (" + extent + ")";
  std::string buffers;
  for (int k = 0; k < 300; ++k)
    buffers +=
        std::string(k ? ", \"b" : "\"b") + std::to_string(k) + R"(": {"type": "f64", "shape": [")" + extent + "\"]}";
  CHECK(code_of(R"({"kplan": 1, "name": "m", "buffers": {)" + buffers +
                R"(}, "statements": [{"communicate": "b0[0]@0 <<= b1[0]@0"}]})") == "KP-P040");
  // One operator, written out for each of many places.
  std::string expression = "left + right";
  for (int k = 0; k < 8; ++k) expression = "(" + expression + ") * (" + expression + ")";
  std::string uses;
  for (int k = 0; k < 200; ++k) uses += (k ? ", " : "") + std::string(R"({"communicate": "A[0]@0 << big << B[0]@0"})");
  CHECK(code_of(minimal(uses, R"("operators": {"big": {"expression": ")" + expression + "\"}}, ")) == "KP-P040");
  // A choice between records, written out for each of many fields.
  std::string fields;
  for (int k = 0; k < 4096; ++k)
    fields += (k ? ", " : "") + std::string(R"({"name": "f)") + std::to_string(k) + R"(", "type": "i8"})";
  std::string choice = "left";
  for (int k = 0; k < 90; ++k) choice = "left.f0 < right.f" + std::to_string(k) + " ? right : " + choice;
  CHECK(
      code_of(
          R"({"kplan": 1, "name": "m", "types": {"wide": {"fields": [)" + fields +
          R"(]}}, "operators": {"pick": {"expression": ")" + choice +
          R"("}}, "buffers": {"P": {"type": "wide", "shape": [1]}}, "statements": [{"communicate": "P[0]@0 << pick << P[0]@1"}]})") ==
      "KP-P040");
}

TEST_CASE("a record of a hundred thousand fields is refused at the first that is too far", "[plans][json]") {
  std::string fields;
  for (int k = 0; k < 100'000; ++k)
    fields += (k ? ", " : "") + std::string(R"({"name": "f)") + std::to_string(k) + R"(", "type": "i8"})";
  CHECK(code_of(minimal(copy, R"("types": {"wide": {"fields": [)" + fields + "]}}, ")) == "KP-P044");
}

TEST_CASE("files that cannot be read are named", "[plans][json]") {
  const auto message = [](const std::string& path) {
    try {
      Plan::parse_file(path);
    } catch (const PlanError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(message("/nowhere/halo.json") == "/nowhere/halo.json cannot be read: No such file or directory [KP-J001]");
  CHECK(message(good_folder) == good_folder + " is a folder, not a file [KP-J001]");
  CHECK(message("/dev/zero") == "/dev/zero is larger than the 16777216 bytes that are read [KP-J002]");
}

TEST_CASE("a control byte in a name does not cut the message short", "[plans][json]") {
  // Found by fuzzing: the NUL ended what() before its code.
  const std::string json =
      R"({"kplan": 1, "name": "x", "operators": {"a": {"expression\u0000": "left"}}, "statements": []})";
  try {
    Plan::parse(json);
    FAIL("the key is wrong");
  } catch (const PlanError& e) {
    CHECK(std::string(e.what()).find("the key `expression\\x00` is not known here") != std::string::npos);
    CHECK(std::string(e.what()).find("[KP-J011]") != std::string::npos);
  }
}

}  // namespace kplan::test
