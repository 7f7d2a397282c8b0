// How it works: every entry becomes checked expressions or lists of scalars of the buffer's type; which ranks and how
// many elements there are is not known yet, so that list lengths are compared when a rank is filled.
#include "tools/kplan/data_document.hpp"

#include <fmt/format.h>

#include <charconv>

#include "plans/diagnostic.hpp"
#include "plans/operand_types.hpp"

namespace kplan::cli {
namespace {

bool is_literal(const JsonPlace& place) {
  const JsonKind kind = place.value->kind;
  return kind == JsonKind::boolean || kind == JsonKind::integer || kind == JsonKind::real;
}

/// A number or a boolean as it is written. Integers that only a u64 holds are reals to other types.
ScalarValue written_scalar(const JsonValue& v, Scalar type) {
  if (v.kind == JsonKind::boolean) return ScalarValue::boolean(v.boolean);
  if (v.kind == JsonKind::integer) return ScalarValue::integer(v.integer);
  if (type == Scalar::u64 && v.large_integer != 0) return {Scalar::u64, {v.large_integer, 0}};
  return ScalarValue::real(v.real);
}

/// A value that stands for itself. Complex numbers are written [re, im].
ScalarValue literal_scalar(const JsonPlace& place, Scalar type) {
  const auto refuse = [&](const std::string& given) {
    place.fail("KP-D004", fmt::format("a value of {} is expected here{}", name_of(type), given));
  };
  if (is_complex(type) && place.value->kind == JsonKind::array) {
    if (place.value->items.size() != 2) refuse("");
    const Scalar part = part_of(type);
    const double parts[2] = {literal_scalar(place.item(0), part).as_real(),
                             literal_scalar(place.item(1), part).as_real()};
    return convert(ScalarValue::load(Scalar::c128, parts), type);
  }
  if (!is_literal(place)) refuse("");
  const ScalarValue written = written_scalar(*place.value, type);
  const bool fits = written.type == type || fits_type(written, type);
  if (!fits || (written.type == Scalar::boolean) != (type == Scalar::boolean))
    refuse(fmt::format(", not {}", to_literal(written)));
  return convert(written, type);
}

std::vector<ScalarValue> listed_elements(const JsonPlace& list, const ElementType& type) {
  list.expect(JsonKind::array);
  std::vector<ScalarValue> out;
  for (std::size_t k = 0; k < list.value->items.size(); ++k) {
    const JsonPlace item = list.item(k);
    if (!type.is_record()) {
      out.push_back(literal_scalar(item, type.scalar));
      continue;
    }
    std::vector<std::string> names;
    for (const Field& f : type.fields) names.push_back(f.name);
    item.expect_keys(names);
    for (const Field& f : type.fields) out.push_back(literal_scalar(item.required(f.name), f.type));
  }
  return out;
}

/// `form` is what is to be written.
void expect_object(const JsonPlace& place, const char* what, const std::string& name, const char* form) {
  if (place.value->kind != JsonKind::object)
    place.fail("KP-J010", fmt::format("{} `{}` takes {}, not {}", what, name, form, name_of(place.value->kind)));
}

std::int64_t rank_of_key(const JsonPlace& place, const std::string& key) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), out);
  if (error != std::errc() || end != key.data() + key.size() || out < 0)
    place.fail("KP-D005", fmt::format("values stand under the number of their rank, and `{}` is none", key));
  return out;
}

}  // namespace

std::vector<Field> fields_of(const ElementType& type) {
  if (type.is_record()) return type.fields;
  return {{"", type.scalar, 0}};
}

DataDocument::DataDocument(const PlanModel& plan, const std::string& file) : file_(file), named_plan_(plan) {
  named_plan_.source.document = file;
  const JsonDocument document(file, read_document(file));
  const JsonPlace root = document.root();
  root.expect(JsonKind::object);
  for (std::size_t k = 0; k < root.value->items.size(); ++k) {
    const std::string& name = root.value->keys[k];
    const JsonPlace place = root.item(k);
    const int b = plan.find_buffer(name), p = plan.find_parameter(name);
    if (b >= 0) buffers_[static_cast<std::size_t>(b)] = read_buffer(plan.buffers[static_cast<std::size_t>(b)], place);
    else if (p >= 0)
      parameters_[static_cast<std::size_t>(p)] = read_parameter(plan.parameters[static_cast<std::size_t>(p)], place);
    else {
      std::vector<std::string> names;
      for (const Parameter& known : plan.parameters) names.push_back(known.name);
      for (const Buffer& known : plan.buffers) names.push_back(known.name);
      place.fail("KP-D001", fmt::format("plan {} declares no `{}`{}", plan.name, name, suggestion(name, names)));
    }
  }
}

ExprPtr DataDocument::read_expression(const JsonPlace& place, const std::vector<std::string>& variables, Scalar type,
                                      SourceText& text) const {
  if (is_literal(place)) {
    text = {"", place.origin(), 0};
    return constant_node(literal_scalar(place, type), {}, false);
  }
  text = place.text();
  return check_free_expression(named_plan_, text, variables, type);
}

BufferFill DataDocument::read_buffer(const Buffer& buffer, const JsonPlace& place) const {
  expect_object(place, "buffer", buffer.name, R"({"fill": expression} or {"values": [...]})");
  place.expect_keys({"fill", "values"});
  BufferFill out;
  out.origin = place.origin();
  const auto fill = place.member("fill"), values = place.member("values");
  if ((fill != nullptr) == (values != nullptr))
    place.fail("KP-D002", fmt::format("buffer `{}` takes either a `fill` or `values`", buffer.name));
  if (values && values->value->kind == JsonKind::array) {
    out.values[-1] = listed_elements(*values, buffer.type);
  } else if (values) {
    values->expect(JsonKind::object);
    for (std::size_t k = 0; k < values->value->items.size(); ++k) {
      const JsonPlace list = values->item(k);
      const auto [at, is_new] =
          out.values.emplace(rank_of_key(list, values->value->keys[k]), listed_elements(list, buffer.type));
      if (!is_new) list.fail("KP-D005", fmt::format("rank {} is given twice", at->first));
    }
  } else {
    std::vector<std::string> variables, names;
    for (std::size_t d = 0; d < buffer.shape.size(); ++d) variables.push_back(fmt::format("i{}", d));
    for (const Field& f : fields_of(buffer.type)) names.push_back(f.name);
    if (buffer.type.is_record()) fill->expect(JsonKind::object).expect_keys(names);
    for (const Field& f : fields_of(buffer.type)) {
      SourceText text;
      out.expressions.push_back(
          read_expression(buffer.type.is_record() ? fill->required(f.name) : *fill, variables, f.type, text));
      out.texts.push_back(std::move(text));
    }
  }
  return out;
}

ParameterFill DataDocument::read_parameter(const Parameter& parameter, const JsonPlace& place) const {
  expect_object(place, "parameter", parameter.name, R"({"value": expression})");
  place.expect_keys({"value"});
  ParameterFill out;
  out.expression = read_expression(place.required("value"), {}, parameter.type, out.text);
  return out;
}

const BufferFill* DataDocument::buffer(std::size_t b) const {
  const auto it = buffers_.find(b);
  return it == buffers_.end() ? nullptr : &it->second;
}

const ParameterFill* DataDocument::parameter(std::size_t p) const {
  const auto it = parameters_.find(p);
  return it == parameters_.end() ? nullptr : &it->second;
}

}  // namespace kplan::cli
