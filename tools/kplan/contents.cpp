// How it works: parameters come first, in the plan's order, since shapes and fills depend on them; then each buffer by
// its fill, its listed values, or the default: element number times ranks plus rank, times buffers plus buffer, plus 1.
#include "tools/kplan/contents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "engine/analysis/knowledge.hpp"
#include "engine/bind.hpp"
#include "plans/diagnostic.hpp"

namespace kplan::cli {
namespace {

template <class T>
bool reads_as(std::string_view text, T& out) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<Value> value_from_text(std::string_view text) {
  std::int64_t integer = 0;
  std::uint64_t large_integer = 0;
  double real = 0, imaginary = 0;
  if (text == "true" || text == "false") return Value(text == "true");
  if (reads_as(text, integer)) return Value(integer);
  if (reads_as(text, large_integer)) return Value(large_integer);
  if (reads_as(text, real)) return Value(real);
  const std::size_t comma = text.find(',');
  if (comma != std::string_view::npos && reads_as(text.substr(0, comma), real) &&
      reads_as(text.substr(comma + 1), imaginary))
    return Value(std::complex<double>(real, imaginary));
  return std::nullopt;
}

Value value_of(const ScalarValue& v) {
  if (v.type == Scalar::boolean) return Value(v.as_boolean());
  if (v.type == Scalar::u64) return Value(v.bits[0]);
  if (is_integer(v.type)) return Value(v.as_integer());
  if (is_real(v.type)) return Value(v.as_real());
  std::complex<double> c;
  convert(v, Scalar::c128).store(&c);
  return Value(c);
}

template <class T>
Value array_of(std::span<const std::byte> bytes) {
  return Value(std::span<const T>(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)));
}

/// A fixed buffer's contents as compile takes them.
Value array_value(Scalar type, std::span<const std::byte> bytes) {
  switch (type) {
    case Scalar::boolean: return array_of<bool>(bytes);
    case Scalar::i8: return array_of<std::int8_t>(bytes);
    case Scalar::i16: return array_of<std::int16_t>(bytes);
    case Scalar::i32: return array_of<std::int32_t>(bytes);
    case Scalar::i64: return array_of<std::int64_t>(bytes);
    case Scalar::u8: return array_of<std::uint8_t>(bytes);
    case Scalar::u16: return array_of<std::uint16_t>(bytes);
    case Scalar::u32: return array_of<std::uint32_t>(bytes);
    case Scalar::u64: return array_of<std::uint64_t>(bytes);
    case Scalar::f32: return array_of<float>(bytes);
    case Scalar::f64: return array_of<double>(bytes);
    case Scalar::c64: return array_of<std::complex<float>>(bytes);
    case Scalar::c128: return array_of<std::complex<double>>(bytes);
  }
  return Value(0);
}

/// The number as an element of the type: what does not fit starts again at 1, so that it is never negative nor zero.
ScalarValue default_scalar(std::int64_t number, Scalar type) {
  if (type == Scalar::boolean) return ScalarValue::boolean(number % 2 != 0);
  if (is_integer(type) && size_of(type) < 8) {
    const std::int64_t largest = (std::int64_t{1} << (8 * size_of(type) - 1)) - 1;
    number = (number - 1) % largest + 1;
  }
  if (!is_complex(type)) return convert(ScalarValue::integer(number), type);
  const double parts[2] = {static_cast<double>(number), -static_cast<double>(number)};
  return convert(ScalarValue::load(Scalar::c128, parts), type);
}

std::optional<std::string> data_file(const Options& options) {
  if (options.data_file) return options.data_file;
  std::filesystem::path beside(options.plan_file);
  beside.replace_extension(".data.json");
  std::error_code ignored;
  if (std::filesystem::exists(beside, ignored)) return beside.string();
  return std::nullopt;
}

}  // namespace

Contents::Contents(const Plan& plan, const Options& options) : plan_(plan) {
  for (const std::string& setting : options.settings) read_setting(setting);
  if (const auto file = data_file(options)) data_ = std::make_unique<DataDocument>(plan.model(), *file);
}

void Contents::read_setting(const std::string& setting) {
  const std::size_t equals = setting.find('=');
  const std::string name = setting.substr(0, equals);
  const auto value =
      equals == std::string::npos ? std::nullopt : value_from_text(std::string_view(setting).substr(equals + 1));
  if (!value)
    throw argument_error(
        "KP-L003",
        fmt::format("--set {}: name=value is expected, the value an integer, a real, true, false, or re,im", setting));
  const int p = plan_.model().find_parameter(name);
  if (p < 0) {
    std::vector<std::string> names;
    for (const Parameter& known : plan_.model().parameters) names.push_back(known.name);
    const bool is_buffer = plan_.model().find_buffer(name) >= 0;
    throw argument_error(
        "KP-L004", is_buffer
                       ? fmt::format("--set {}: `{}` is a buffer; its contents are given with --data", setting, name)
                       : fmt::format("--set {}: plan {} has no parameter `{}`{}", setting, plan_.name(), name,
                                     suggestion(name, names)));
  }
  scalar_value(*value, plan_.model().parameters[static_cast<std::size_t>(p)].type, plan_.name(),
               name);  // throws where it does not fit
  if (std::ranges::count(settings_, name, [](const auto& s) { return s.first; }) > 0)
    throw argument_error("KP-L005", fmt::format("--set {}: `{}` is set twice", setting, name));
  settings_.emplace_back(name, *value);
}

ScalarValue Contents::evaluated(const Expr& e, const SourceText& text, const RankState& state,
                                const ScalarValue* indices, const std::string& what) const {
  try {
    return evaluate(e, {.state = &state, .variables = indices});
  } catch (const EvaluationFault& f) {
    throw kplan::error_in(data_->file(), text, f.span, "KP-D006",
                          fmt::format("{} on rank {}: {}", what, state.rank, f.message));
  }
}

ScalarValue Contents::parameter_value(const Parameter& parameter, const ParameterFill& fill,
                                      const RankState& state) const {
  const std::string what = fmt::format("the value of `{}`", parameter.name);
  const ScalarValue out = evaluated(*fill.expression, fill.text, state, nullptr, what);
  if (!keeps_value(out, parameter.type))
    throw kplan::error_in(data_->file(), fill.text, fill.expression->span, "KP-D011",
                          fmt::format("{} on rank {} is {}, which is no value of {}; {}(...) casts", what, state.rank,
                                      to_literal(out), name_of(parameter.type), name_of(parameter.type)));
  return convert(out, parameter.type);
}

Contents::Parameters Contents::parameters(std::int64_t rank, std::int64_t size) const {
  const PlanModel& plan = plan_.model();
  Parameters out;
  RankState so_far;
  so_far.rank = rank;
  so_far.size = size;
  for (std::size_t p = 0; p < plan.parameters.size(); ++p) {
    const Parameter& parameter = plan.parameters[p];
    const auto set = std::ranges::find(settings_, parameter.name, [](const auto& s) { return s.first; });
    const ParameterFill* fill = data_ ? data_->parameter(p) : nullptr;
    if (set != settings_.end()) out.emplace_back(scalar_value(set->second, parameter.type, plan.name, parameter.name));
    else if (fill) {
      visit(*fill->expression, [&](const Expr& e) {
        if (e.kind != ExprKind::parameter || (e.id < static_cast<int>(p) && out[static_cast<std::size_t>(e.id)]))
          return;
        throw kplan::error_in(
            data_->file(), fill->text, e.span, "KP-D007",
            fmt::format("`{}` has no value yet; a parameter's value may depend on those declared before it",
                        plan.parameters[static_cast<std::size_t>(e.id)].name));
      });
      out.emplace_back(parameter_value(parameter, *fill, so_far));
    } else out.push_back(parameter.default_value);
    so_far.parameters.push_back(out.back().value_or(ScalarValue{parameter.type, {}}));
  }
  return out;
}

RankState Contents::state(std::int64_t rank, std::int64_t size, const Parameters& parameters) const {
  RankState out;
  out.rank = rank;
  out.size = size;
  for (const auto& p : parameters) out.parameters.push_back(*p);
  out.layouts = layouts_of(plan_.model(), rank, size, out.parameters);
  out.contents.assign(plan_.model().buffers.size(), nullptr);
  return out;
}

bool Contents::is_given(std::size_t b) const {
  return data_ && data_->buffer(b) && !plan_.model().buffers[b].is_varying;
}

Values Contents::values(std::int64_t rank, std::int64_t size) const {
  const PlanModel& plan = plan_.model();
  const Parameters known = parameters(rank, size);
  Values out;
  for (std::size_t p = 0; p < known.size(); ++p)
    if (known[p]) out.emplace_back(plan.parameters[p].name, value_of(*known[p]));
  // Without all parameters there are no shapes; whoever takes these values will say which one is missing.
  if (std::ranges::any_of(known, [](const auto& v) { return !v; })) return out;
  std::optional<RankState> shaped;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    if (!is_given(b)) continue;
    if (!shaped) shaped = state(rank, size, known);
    const BufferMemory contents = filled(b, *shaped);
    const ElementType& type = plan.buffers[b].type;
    out.emplace_back(plan.buffers[b].name,
                     type.is_record() ? Value::records(contents.bytes()) : array_value(type.scalar, contents.bytes()));
  }
  return out;
}

std::vector<std::string> Contents::made_up() const {
  const PlanModel& plan = plan_.model();
  std::set<std::string> out;
  for (const Statement& s : plan.statements)
    for (const int b : varying_names(plan, s).buffers)
      if (const auto number = static_cast<std::size_t>(b); !data_ || !data_->buffer(number))
        out.insert(plan.buffers[number].name);
  return {out.begin(), out.end()};
}

RankMemory Contents::memory(std::int64_t rank, std::int64_t size) const {
  RankState s = state(rank, size, parameters(rank, size));
  RankMemory out{rank, s.parameters, {}, {}};
  for (std::size_t b = 0; b < s.layouts.size(); ++b) out.buffers.push_back(filled(b, s));
  out.layouts = std::move(s.layouts);
  return out;
}

BufferMemory Contents::filled(std::size_t b, const RankState& state) const {
  const Buffer& buffer = plan_.model().buffers[b];
  const Layout& layout = state.layouts[b];
  BufferMemory out(layout, buffer.type);
  const BufferFill* fill = data_ ? data_->buffer(b) : nullptr;
  if (!fill) fill_by_default(b, state, layout, out.bytes());
  else if (fill->expressions.empty()) fill_by_values(*fill, buffer, state, layout, out.bytes());
  else fill_by_expressions(*fill, buffer, state, layout, out.bytes());
  return out;
}

void Contents::fill_by_expressions(const BufferFill& fill, const Buffer& buffer, const RankState& state,
                                   const Layout& layout, std::span<std::byte> memory) const {
  const std::vector<Field> fields = fields_of(buffer.type);
  std::vector<ScalarValue> indices(layout.shape.size());
  each_element(layout, [&](const auto& at, std::int64_t offset) {
    for (std::size_t d = 0; d < at.size(); ++d) indices[d] = ScalarValue::integer(at[d]);
    std::byte* element = memory.data() + static_cast<std::size_t>(offset) * buffer.type.size_bytes;
    for (std::size_t f = 0; f < fields.size(); ++f)
      convert(evaluated(*fill.expressions[f], fill.texts[f], state, indices.data(),
                        fmt::format("the fill of `{}`", buffer.name)),
              fields[f].type)
          .store(element + fields[f].offset_bytes);
    return true;
  });
}

void Contents::fill_by_values(const BufferFill& fill, const Buffer& buffer, const RankState& state,
                              const Layout& layout, std::span<std::byte> memory) const {
  auto it = fill.values.find(state.rank);
  if (it == fill.values.end()) it = fill.values.find(-1);
  if (it == fill.values.end())
    throw error_at(data_->file(), fill.origin, "KP-D009",
                   fmt::format("no values of `{}` are given for rank {} of {}", buffer.name, state.rank, state.size));
  const std::vector<Field> fields = fields_of(buffer.type);
  const auto given = static_cast<std::int64_t>(it->second.size() / fields.size());
  if (given != layout.element_count)
    throw error_at(data_->file(), fill.origin, "KP-D010",
                   fmt::format("{} values of `{}` are given for rank {} of {}, where it has {} elements", given,
                               buffer.name, state.rank, state.size, layout.element_count));
  const ScalarValue* next = it->second.data();
  each_element(layout, [&](const auto&, std::int64_t offset) {
    for (const Field& f : fields)
      (next++)->store(memory.data() + static_cast<std::size_t>(offset) * buffer.type.size_bytes + f.offset_bytes);
    return true;
  });
}

void Contents::fill_by_default(std::size_t b, const RankState& state, const Layout& layout,
                               std::span<std::byte> memory) const {
  const Buffer& buffer = plan_.model().buffers[b];
  const std::vector<Field> fields = fields_of(buffer.type);
  const auto buffers = static_cast<std::int64_t>(plan_.model().buffers.size());
  // Uniform contents are the same everywhere.
  const std::int64_t ranks = buffer.is_uniform ? 1 : state.size, rank = buffer.is_uniform ? 0 : state.rank;
  std::int64_t k = 0;
  each_element(layout, [&](const auto&, std::int64_t offset) {
    for (const Field& f : fields) {
      default_scalar((k * ranks + rank) * buffers + static_cast<std::int64_t>(b) + 1, f.type)
          .store(memory.data() + static_cast<std::size_t>(offset) * buffer.type.size_bytes + f.offset_bytes);
      ++k;
    }
    return true;
  });
}

}  // namespace kplan::cli
