#include "kplan/plan.hpp"

#include <fmt/format.h>

#include "plans/hash.hpp"
#include "plans/json_document.hpp"
#include "plans/json_reader.hpp"
#include "plans/model.hpp"

namespace kplan {

Plan::Plan(std::shared_ptr<const PlanModel> model) : model_(std::move(model)) {
  const std::string text = to_json();
  const Hash128 h = hash128(std::as_bytes(std::span(text)));
  digest_ = fmt::format("{:016x}{:016x}", h.high, h.low);
}

Plan Plan::parse(std::string_view json, std::string name) {
  return Plan(check_plan(read_plan(name, std::string(json))));
}

Plan Plan::parse_file(const std::string& path) { return Plan(check_plan(read_plan(path, read_document(path)))); }

const std::string& Plan::name() const { return model_->name; }
std::string Plan::to_json() const { return write_plan(model_->source); }
const std::string& Plan::digest() const { return digest_; }

}  // namespace kplan
