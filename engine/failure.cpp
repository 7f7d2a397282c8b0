#include "engine/failure.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kplan/error.hpp"

namespace kplan {
namespace {

using Json = nlohmann::json;

Json failure_json(const std::exception_ptr& failure) {
  const auto entry = [](const char* kind, const Error& e) {
    return Json{{"kind", kind}, {"code", e.code()}, {"what", e.what()}};
  };
  try {
    std::rethrow_exception(failure);
  } catch (const PlanError& e) {
    return entry("plan", e);
  } catch (const Unsupported& e) {
    return entry("unsupported", e);
  } catch (const RunError& e) {
    return entry("run", e);
  } catch (const CompilerError& e) {
    return entry("compiler", e);
  } catch (const TransportError& e) {
    return entry("transport", e);
  } catch (const Error& e) {
    return entry("internal", e);
  } catch (const std::exception& e) {
    return Json{{"kind", "internal"}, {"code", "KP-I030"}, {"what", e.what()}};
  }
}

}  // namespace

std::string encode_failure(const std::exception_ptr& failure) {
  if (!failure) return {};
  return failure_json(failure).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::exception_ptr decode_failure(std::string_view text, std::int64_t rank) {
  if (text.empty()) return nullptr;
  const Json failure = Json::parse(text);
  const std::string kind = failure.at("kind"), code = failure.at("code");
  // The text ends with the code already.
  std::string what = failure.at("what"), detail;
  if (const auto end = what.find(" [" + code + "]"); end != std::string::npos) {
    if (end + code.size() + 4 < what.size()) detail = what.substr(end + code.size() + 4);
    what.erase(end);
  }
  const std::string message = fmt::format("rank {}: {}", rank, what);
  if (kind == "plan") return std::make_exception_ptr(PlanError(code, message, detail));
  if (kind == "unsupported") return std::make_exception_ptr(Unsupported(code, message, detail));
  if (kind == "run") return std::make_exception_ptr(RunError(code, message, detail));
  if (kind == "compiler") return std::make_exception_ptr(CompilerError(code, message, detail));
  if (kind == "transport") return std::make_exception_ptr(TransportError(code, message, detail));
  return std::make_exception_ptr(InternalError(code, message, detail));
}

}  // namespace kplan
