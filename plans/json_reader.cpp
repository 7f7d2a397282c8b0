// How it works: one function for each kind of object of language.md section 7. Each checks the keys it knows, takes
// them in order, and leaves meaning to the checker.
#include "plans/json_reader.hpp"

#include <fmt/format.h>

#include "plans/diagnostic.hpp"
#include "plans/json_document.hpp"

namespace kplan {
namespace {

/// A text that is an expression; numbers may stand for themselves.
SourceText expression_text(const JsonPlace& place) {
  if (place.value->kind == JsonKind::integer) return {to_expression(place.value->integer), place.origin()};
  if (place.value->kind != JsonKind::string)
    place.fail("KP-J010", fmt::format("an expression is expected here, as a string or an integer, not {}",
                                      name_of(place.value->kind)));
  return place.text();
}

template <class Parse>
auto parsed(const JsonPlace& place, const SourceText& text, Parse parse) {
  try {
    return parse(text.text);
  } catch (const SyntaxFault& f) {
    throw error_in(place.document->name(), text, f.span, f.code, f.message);
  }
}

/// `uniform` or `private`, `fixed` or `varying`.
bool one_of_two(const JsonPlace& place, std::string_view yes, std::string_view no) {
  const std::string& word = place.expect(JsonKind::string).value->string;
  if (word == yes) return true;
  if (word != no) place.fail("KP-J013", fmt::format("`{}` or `{}` is expected here, not `{}`", yes, no, word));
  return false;
}

std::int64_t non_negative(const JsonPlace& place) {
  const std::int64_t v = place.expect(JsonKind::integer).value->integer;
  if (v < 0) place.fail("KP-J013", fmt::format("a number of bytes is expected here, not {}", v));
  return v;
}

ScalarValue scalar_default(const JsonPlace& place) {
  switch (place.value->kind) {
    case JsonKind::integer: return ScalarValue::integer(place.value->integer);
    case JsonKind::real: return ScalarValue::real(place.value->real);
    case JsonKind::boolean: return ScalarValue::boolean(place.value->boolean);
    case JsonKind::array:
      if (place.value->items.size() == 2) {
        double parts[2];
        for (std::size_t k = 0; k < 2; ++k) {
          const JsonKind kind = place.value->items[k].kind;
          if (kind != JsonKind::integer && kind != JsonKind::real) place.item(k).expect(JsonKind::real);
          parts[k] = place.value->items[k].real;
        }
        return ScalarValue::load(Scalar::c128, parts);
      }
      [[fallthrough]];
    default: place.fail("KP-J010", "a number, true, false or [real, imaginary] is expected here");
  }
}

ParameterSource read_parameter(const SourceText& name, const JsonPlace& place) {
  ParameterSource out;
  out.name = name;
  if (place.value->kind == JsonKind::string) {
    out.type = place.text();
    return out;
  }
  place.expect_keys({"type", "scope", "time", "default"});
  out.type = place.required("type").text();
  if (const auto scope = place.member("scope")) out.is_uniform = one_of_two(*scope, "uniform", "private");
  if (const auto time = place.member("time")) out.is_varying = !one_of_two(*time, "fixed", "varying");
  if (const auto value = place.member("default")) {
    out.default_value = scalar_default(*value);
    out.default_origin = value->origin();
  }
  return out;
}

TypeSource read_type(const JsonPlace& place) {
  TypeSource out;
  out.origin = place.origin();
  if (place.value->kind == JsonKind::string) {
    out.name = place.text();
    return out;
  }
  place.expect_keys({"fields", "size"});
  const JsonPlace fields = place.required("fields");
  fields.expect(JsonKind::array);
  if (fields.value->items.empty()) fields.fail("KP-J013", "a record needs at least one field");
  for (std::size_t k = 0; k < fields.value->items.size(); ++k) {
    const JsonPlace field = fields.item(k);
    field.expect_keys({"name", "type", "offset"});
    TypeSource::FieldSource f{field.required("name").text(), field.required("type").text(), {}};
    if (const auto offset = field.member("offset")) f.offset_bytes = non_negative(*offset);
    out.fields.push_back(std::move(f));
  }
  if (const auto size = place.member("size")) out.size_bytes = non_negative(*size);
  return out;
}

std::vector<SourceText> read_expressions(const JsonPlace& place) {
  place.expect(JsonKind::array);
  std::vector<SourceText> out;
  for (std::size_t k = 0; k < place.value->items.size(); ++k) out.push_back(expression_text(place.item(k)));
  return out;
}

BufferSource read_buffer(const SourceText& name, const JsonPlace& place) {
  place.expect_keys({"type", "shape", "strides", "scope", "time"});
  BufferSource out;
  out.name = name;
  out.type = read_type(place.required("type"));
  const JsonPlace shape = place.required("shape");
  out.shape = read_expressions(shape);
  out.shape_origin = shape.origin();
  if (const auto strides = place.member("strides")) out.strides = read_expressions(*strides);
  if (const auto scope = place.member("scope")) out.is_uniform = one_of_two(*scope, "uniform", "private");
  if (const auto time = place.member("time")) out.is_varying = !one_of_two(*time, "fixed", "varying");
  return out;
}

OperatorSource read_operator(const SourceText& name, const JsonPlace& place) {
  place.expect_keys({"expression", "native", "associative", "commutative"});
  OperatorSource out;
  out.name = name;
  const auto expression = place.member("expression");
  if (const auto native = place.member("native")) out.is_native = native->boolean();
  if (out.is_native == (expression != nullptr))
    place.fail("KP-J012",
               "an operator is either an `expression` over left and right, or `native`: true, a C++ function "
               "registered with the engine");
  if (expression && expression->value->kind == JsonKind::object) {
    for (std::size_t k = 0; k < expression->value->items.size(); ++k) {
      const JsonPlace field = expression->item(k);
      out.fields.emplace_back(SourceText{expression->value->keys[k], field.origin()}, expression_text(field));
    }
    if (out.fields.empty()) expression->fail("KP-J013", "an operator on records needs an expression for each field");
  } else if (expression) {
    out.expression = expression_text(*expression);
  }
  if (const auto a = place.member("associative")) out.is_associative = a->boolean();
  if (const auto c = place.member("commutative")) out.is_commutative = c->boolean();
  return out;
}

ReductionSyntax read_reduction(const JsonPlace& place) {
  place.expect_keys({"place", "receiver", "operator", "value", "sender"});
  const auto part = [&](std::string_view key) {
    const JsonPlace p = place.required(key);
    return parsed(p, expression_text(p), parse_expression);
  };
  ReductionSyntax out;
  out.place = part("place");
  out.receiver = part("receiver");
  out.value = part("value");
  out.sender = part("sender");
  if (const auto op = place.member("operator")) {
    out.op = op->text().text;
    if (!is_identifier(out.op)) op->fail("KP-S013", fmt::format("`{}` is not the name of an operator", out.op));
  }
  return out;
}

ClauseSyntax read_clause(const JsonPlace& place) {
  place.expect_keys({"names", "in", "name", "is", "filter"});
  ClauseSyntax out;
  const auto name_at = [&](const JsonPlace& p) {
    const SourceText name = p.text();
    if (!is_identifier(name.text) || is_reserved(name.text))
      p.fail("KP-S014",
             fmt::format("`{}` cannot be bound: a name is a C identifier without a meaning of its own", name.text));
    return name.text;
  };
  if (const auto names = place.member("names")) {
    out.kind = ClauseKind::generator;
    place.expect_keys({"names", "in"});
    names->expect(JsonKind::array);
    for (std::size_t k = 0; k < names->value->items.size(); ++k) out.names.push_back(name_at(names->item(k)));
    if (out.names.empty()) names->fail("KP-J013", "a generator binds at least one name");
    const JsonPlace in = place.required("in");
    out.set = parsed(in, expression_text(in), parse_set);
  } else if (const auto name = place.member("name")) {
    out.kind = ClauseKind::binding;
    place.expect_keys({"name", "is"});
    out.names.push_back(name_at(*name));
    const JsonPlace is = place.required("is");
    out.expression = parsed(is, expression_text(is), parse_expression);
  } else {
    out.kind = ClauseKind::filter;
    const auto filter = place.member("filter");
    if (!filter) place.fail("KP-J012", "a clause has the keys `names` and `in`, or `name` and `is`, or `filter`");
    place.expect_keys({"filter"});
    out.expression = parsed(*filter, expression_text(*filter), parse_expression);
  }
  return out;
}

/// The taken-apart form: each part parsed at its own place, then the whole printed, so that spans have one text.
StatementSyntax read_parts(const JsonPlace& place) {
  place.expect_keys({"reductions", "where"});
  StatementSyntax out;
  const JsonPlace reductions = place.required("reductions");
  reductions.expect(JsonKind::array);
  for (std::size_t k = 0; k < reductions.value->items.size(); ++k)
    out.reductions.push_back(read_reduction(reductions.item(k)));
  if (out.reductions.empty()) reductions.fail("KP-J013", "a statement has at least one reduction");
  if (const auto where = place.member("where")) {
    where->expect(JsonKind::array);
    for (std::size_t k = 0; k < where->value->items.size(); ++k) out.clauses.push_back(read_clause(where->item(k)));
  }
  return out;
}

StatementSource read_statement(const JsonPlace& place, std::size_t number) {
  place.expect_keys({"name", "in", "communicate", "direction", "fresh", "order", "knowledge"});
  StatementSource out;
  out.origin = place.origin();
  out.name = {std::to_string(number), place.origin()};
  if (const auto name = place.member("name")) {
    out.name = name->text();
    if (out.name.text.empty() || out.name.text.size() > 200)
      name->fail("KP-J013", "a statement's name has 1 to 200 bytes");
  }
  out.group = {"world", place.origin()};
  if (const auto in = place.member("in")) out.group = in->text();
  const JsonPlace communicate = place.required("communicate");
  if (communicate.value->kind == JsonKind::object) {
    out.text = {to_text(read_parts(communicate)), communicate.origin(), 0};
  } else {
    out.text = communicate.text();
  }
  out.syntax = parsed(communicate, out.text, parse_statement);
  if (const auto direction = place.member("direction")) out.is_pull = one_of_two(*direction, "pull", "push");
  if (const auto fresh = place.member("fresh")) out.is_fresh = fresh->boolean();
  if (const auto order = place.member("order")) out.is_any_order = one_of_two(*order, "any", "sender");
  if (const auto knowledge = place.member("knowledge")) out.knowledge = knowledge->text();
  return out;
}

template <class F>
void each_member(const JsonPlace& root, std::string_view key, F f) {
  const auto object = root.member(key);
  if (!object) return;
  object->expect(JsonKind::object);
  for (std::size_t k = 0; k < object->value->items.size(); ++k) {
    const JsonPlace item = object->item(k);
    f(SourceText{object->value->keys[k], item.origin()}, item);
  }
}

}  // namespace

PlanSource read_plan(const std::string& name, std::string json) {
  const JsonDocument document(name, std::move(json));
  const JsonPlace root = document.root();
  root.expect_keys({"kplan", "name", "types", "parameters", "buffers", "groups", "operators", "statements"});
  const JsonPlace version = root.required("kplan");
  if (version.expect(JsonKind::integer).value->integer != 1)
    version.fail("KP-J014", fmt::format("this is a plan of version {}; version 1 is read", version.value->integer));
  PlanSource out;
  out.document = name;
  out.name = root.required("name").text();
  if (out.name.text.empty() || out.name.text.size() > 200)
    root.required("name").fail("KP-J013", "a plan's name has 1 to 200 bytes");
  each_member(root, "types", [&](SourceText n, const JsonPlace& p) {
    p.expect(JsonKind::object);
    out.types.emplace_back(std::move(n), read_type(p));
  });
  each_member(root, "parameters",
              [&](const SourceText& n, const JsonPlace& p) { out.parameters.push_back(read_parameter(n, p)); });
  each_member(root, "buffers",
              [&](const SourceText& n, const JsonPlace& p) { out.buffers.push_back(read_buffer(n, p)); });
  each_member(root, "groups", [&](const SourceText& n, const JsonPlace& p) {
    p.expect_keys({"color", "key"});
    GroupSource group{n, expression_text(p.required("color")), {"rank", p.origin()}};
    if (const auto key = p.member("key")) group.key = expression_text(*key);
    out.groups.push_back(std::move(group));
  });
  each_member(root, "operators",
              [&](const SourceText& n, const JsonPlace& p) { out.operators.push_back(read_operator(n, p)); });
  const JsonPlace statements = root.required("statements");
  statements.expect(JsonKind::array);
  std::size_t nodes = 0;
  for (std::size_t k = 0; k < statements.value->items.size(); ++k) {
    out.statements.push_back(read_statement(statements.item(k), k));
    nodes += node_count(out.statements.back().syntax);
    if (nodes > largest_plan_node_count)
      statements.item(k).fail("KP-P040",
                              fmt::format("the statements up to this one have more than {} operators and operands",
                                          largest_plan_node_count));
  }
  if (out.statements.empty()) statements.fail("KP-J013", "a plan has at least one statement");
  return out;
}

}  // namespace kplan
