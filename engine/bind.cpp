#include "engine/bind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/analysis/joined_fields.hpp"
#include "engine/analysis/planes.hpp"
#include "plans/diagnostic.hpp"

namespace kplan {

[[gnu::hot]] ScalarValue scalar_value(const Value& value, Scalar type, const std::string& plan,
                                      const std::string& name) {
  const auto fail = [&](const std::string& text) -> ScalarValue {
    throw PlanError("KP-B013",
                    fmt::format("plan {}: {} was given for `{}`, which is {}", plan, text, name, name_of(type)));
  };
  if (value.is_array()) return fail("an array");
  if (const auto* b = std::get_if<bool>(&value.scalar()))
    return type == Scalar::boolean ? ScalarValue::boolean(*b) : fail(*b ? "true" : "false");
  if (const auto* i = std::get_if<std::int64_t>(&value.scalar())) {
    const ScalarValue v = ScalarValue::integer(*i);
    if (type == Scalar::i64) return v;
    if (type == Scalar::boolean) return fail(to_text(v));
    if (is_integer(type) && (convert(v, type).as_integer() != *i || (is_unsigned_integer(type) && *i < 0)))
      return fail(to_text(v));
    return convert(v, type);
  }
  if (const auto* u = std::get_if<std::uint64_t>(&value.scalar())) {
    const ScalarValue v{Scalar::u64, {*u, 0}};
    return type == Scalar::u64 || is_real(type) || is_complex(type) ? convert(v, type) : fail(fmt::format("{}", *u));
  }
  // Infinity is given as such.
  const auto fits = [type](double x) {
    const bool is_narrow = type == Scalar::f32 || type == Scalar::c64;
    return !is_narrow || !std::isfinite(x) || std::isfinite(static_cast<float>(x));
  };
  if (const auto* d = std::get_if<double>(&value.scalar()))
    return (is_real(type) || is_complex(type)) && fits(*d)
               ? convert(ScalarValue::real(*d), type)
               : fail("the real number " + to_literal(ScalarValue::real(*d)));
  const auto& c = std::get<std::complex<double>>(value.scalar());
  const ScalarValue v = ScalarValue::load(Scalar::c128, &c);
  return is_complex(type) && fits(c.real()) && fits(c.imag()) ? convert(v, type) : fail(to_text(v));
}

BoundValues bind_values(const std::shared_ptr<const PlanModel>& model, const Values& values, std::int64_t rank,
                        std::int64_t size) {
  BoundValues out;
  RankState& state = out.bound.state;
  state.rank = out.bound.world_rank = rank;
  state.size = out.bound.world_size = size;
  const auto find = [&](const std::string& name) -> const Value* {
    const auto it = std::ranges::find(values, name, [](const auto& v) { return v.first; });
    return it == values.end() ? nullptr : &it->second;
  };
  for (const auto& [name, value] : values) {
    if (std::ranges::count(values, name, [](const auto& v) { return v.first; }) > 1)
      throw PlanError("KP-B014", fmt::format("plan {}: `{}` was given twice", model->name, name));
    if (model->find_parameter(name) >= 0 || model->find_buffer(name) >= 0) continue;
    std::vector<std::string> names;
    for (const auto& p : model->parameters) names.push_back(p.name);
    for (const auto& b : model->buffers) names.push_back(b.name);
    throw PlanError("KP-B011", fmt::format("plan {} declares no `{}`{}", model->name, name, suggestion(name, names)));
  }
  for (const Parameter& p : model->parameters) {
    const Value* given = find(p.name);
    if (given) state.parameters.push_back(scalar_value(*given, p.type, model->name, p.name));
    else if (p.default_value) state.parameters.push_back(*p.default_value);
    else
      throw PlanError("KP-B012",
                      fmt::format("plan {}: parameter `{}` ({}) has no default and no value was given{}", model->name,
                                  p.name, name_of(p.type), p.is_varying ? "; set() changes it later" : ""));
  }
  out.bound.model = with_planes(with_joined_fields(model));
  state.layouts = layouts_of(*out.bound.model, rank, size, state.parameters);
  const std::size_t buffers = out.bound.model->buffers.size();
  out.contents.resize(buffers);
  out.is_given.resize(buffers);
  state.contents.assign(buffers, nullptr);
  for (std::size_t b = 0; b < model->buffers.size(); ++b) {
    const Buffer& buffer = model->buffers[b];
    const Value* given = find(buffer.name);
    if (!given) continue;
    if (buffer.is_varying)
      throw PlanError("KP-B015",
                      fmt::format("plan {}: contents were given for buffer `{}`, which is not fixed; bind it instead",
                                  model->name, buffer.name));
    if (!given->is_array())
      throw PlanError("KP-B013", fmt::format("plan {}: a number was given for buffer `{}`; give its elements",
                                             model->name, buffer.name));
    if (given->is_records() != buffer.type.is_record() ||
        (!buffer.type.is_record() && given->array_type() != buffer.type.scalar))
      throw PlanError("KP-B013",
                      fmt::format("plan {}: elements of {} were given for buffer `{}` of {}{}", model->name,
                                  given->is_records() ? "records" : name_of(given->array_type()), buffer.name,
                                  buffer.type.is_record() ? "records" : name_of(buffer.type.scalar),
                                  buffer.type.is_record() ? "; give them by Value::records" : ""));
    const std::size_t needed = static_cast<std::size_t>(state.layouts[b].extent) * buffer.type.size_bytes;
    if (given->bytes().size() != needed)
      throw PlanError("KP-B016", fmt::format("plan {}: {} elements were given for buffer `{}`, which has {} on rank {}",
                                             model->name, given->bytes().size() / buffer.type.size_bytes, buffer.name,
                                             state.layouts[b].extent, rank));
    static const std::byte nothing{};  // a null pointer would mean that the contents are unknown
    out.is_given[b] = true;
    out.contents[b] = given->shared_bytes();
    state.contents[b] = needed == 0 ? &nothing : out.contents[b]->data();
  }
  out.bound.groups.resize(model->groups.size());
  return out;
}

}  // namespace kplan
