#include <nlohmann/json.hpp>

#include "plans/json_reader.hpp"

namespace kplan {
namespace {

using Json = nlohmann::ordered_json;

Json scalar_json(const ScalarValue& v) {
  if (v.type == Scalar::boolean) return v.as_boolean();
  if (is_integer(v.type)) return v.as_integer();
  if (is_real(v.type)) return v.as_real();
  double parts[2];
  convert(v, Scalar::c128).store(parts);
  return Json::array({parts[0], parts[1]});
}

Json type_json(const TypeSource& type) {
  if (type.fields.empty()) return type.name.text;
  Json fields = Json::array();
  for (const auto& f : type.fields) {
    Json field{{"name", f.name.text}, {"type", f.type.text}};
    if (f.offset_bytes) field["offset"] = *f.offset_bytes;
    fields.push_back(std::move(field));
  }
  Json out{{"fields", std::move(fields)}};
  if (type.size_bytes) out["size"] = *type.size_bytes;
  return out;
}

Json texts_json(const std::vector<SourceText>& texts) {
  Json out = Json::array();
  for (const auto& t : texts) out.push_back(t.text);
  return out;
}

Json parameter_json(const ParameterSource& p) {
  if (p.is_uniform && !p.is_varying && !p.default_value) return p.type.text;
  Json out{{"type", p.type.text}};
  if (!p.is_uniform) out["scope"] = "private";
  if (p.is_varying) out["time"] = "varying";
  if (p.default_value) out["default"] = scalar_json(*p.default_value);
  return out;
}

Json buffer_json(const BufferSource& b) {
  Json out{{"type", type_json(b.type)}, {"shape", texts_json(b.shape)}};
  if (b.strides) out["strides"] = texts_json(*b.strides);
  if (b.is_uniform) out["scope"] = "uniform";
  if (b.is_varying) out["time"] = *b.is_varying ? "varying" : "fixed";
  return out;
}

Json operator_json(const OperatorSource& o) {
  Json out = Json::object();
  if (o.is_native) {
    out["native"] = true;
  } else if (o.fields.empty()) {
    out["expression"] = o.expression.text;
  } else {
    for (const auto& [field, expression] : o.fields) out["expression"][field.text] = expression.text;
  }
  if (!o.is_associative) out["associative"] = false;
  if (!o.is_commutative) out["commutative"] = false;
  return out;
}

Json statement_json(const StatementSource& s) {
  Json out{{"name", s.name.text}};
  if (s.group.text != "world") out["in"] = s.group.text;
  out["communicate"] = to_text(s.syntax);
  if (s.is_pull) out["direction"] = "pull";
  if (s.is_fresh) out["fresh"] = true;
  if (s.is_any_order) out["order"] = "any";
  if (!s.knowledge.text.empty()) out["knowledge"] = s.knowledge.text;
  return out;
}

}  // namespace

bool is_json_text(const std::string& text) {
  try {
    return !Json(text).dump().empty();
  } catch (const Json::type_error&) {
    return false;
  }
}

std::string write_plan(const PlanSource& plan) {
  Json out{{"kplan", 1}, {"name", plan.name.text}};
  for (const auto& [name, type] : plan.types) out["types"][name.text] = type_json(type);
  for (const auto& p : plan.parameters) out["parameters"][p.name.text] = parameter_json(p);
  for (const auto& b : plan.buffers) out["buffers"][b.name.text] = buffer_json(b);
  for (const auto& g : plan.groups) out["groups"][g.name.text] = {{"color", g.color.text}, {"key", g.key.text}};
  for (const auto& o : plan.operators) out["operators"][o.name.text] = operator_json(o);
  out["statements"] = Json::array();
  for (const auto& s : plan.statements) out["statements"].push_back(statement_json(s));
  return out.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace kplan
