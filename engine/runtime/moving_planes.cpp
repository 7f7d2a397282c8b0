#include "engine/runtime/moving_planes.hpp"

#include <algorithm>
#include <set>

#include "engine/analysis/planes.hpp"

namespace kplan {

MovingPlanes::MovingPlanes(const Program& program) {
  const BoundPlan& bound = program.bound;
  const auto add = [&](const Statement& statement, const Expr& reference, bool is_varying) {
    const Buffer& buffer = bound.model->buffers[static_cast<std::size_t>(reference.id)];
    const Layout& whole = bound.state.layouts[static_cast<std::size_t>(buffer.plane->buffer)];
    Moving& out = planes_.emplace_back(Moving{&statement, &reference, is_varying, {}});
    for (std::size_t d = 0; d < buffer.plane->firsts.size(); ++d) {
      const Expr* const first = buffer.plane->firsts[d].get();
      if (!first) continue;
      const std::int64_t length = bound.state.layouts[static_cast<std::size_t>(reference.id)].shape[d];
      IndexProgram value(*first, bound.state.size);
      out.is_plain = out.is_plain && value.is_complete() && length > 0;
      out.indices.push_back({std::move(value), whole.shape[d] - length,
                             whole.strides[d] * static_cast<std::int64_t>(buffer.type.size_bytes)});
    }
  };
  for (const StatementSchedule& s : program.schedule.statements) {
    const Statement& statement = bound.model->statements[static_cast<std::size_t>(s.statement)];
    const bool is_varying = s.knowledge.is_varying;
    if (s.is_idle && !is_varying) continue;
    for (const Expr* plane : planes_of(*bound.model, statement)) {
      const auto known = std::ranges::find_if(planes_, [&](const Moving& m) { return m.reference->id == plane->id; });
      if (known == planes_.end()) add(statement, *plane, is_varying);
      else known->may_be_outside = known->may_be_outside && is_varying;
    }
  }
}

/// From the beginning of the buffer; nothing where it is outside and may be. Throws PlanError where it must not.
[[gnu::hot]] std::optional<std::int64_t> MovingPlanes::offset_bytes(const BoundPlan& bound, const Moving& plane) {
  std::int64_t out = 0;
  bool is_inside = plane.is_plain;
  for (std::size_t k = 0; is_inside && k < plane.indices.size(); ++k) {
    const Moving::Index& i = plane.indices[k];
    std::int64_t index = 0;
    is_inside = i.value.evaluate(bound.state.parameters, index) && index >= 0 && index <= i.last;
    if (is_inside) out += index * i.stride_bytes;
  }
  if (is_inside) [[likely]]
    return out;
  if (plane.is_plain && plane.may_be_outside) return std::nullopt;
  try {
    const ElementType& type = bound.model->buffers[static_cast<std::size_t>(plane.reference->id)].type;
    return first_of_plane(bound, *plane.statement, *plane.reference) * static_cast<std::int64_t>(type.size_bytes);
  } catch (const PlanError&) {
    if (!plane.may_be_outside) throw;
    return std::nullopt;
  }
}

[[gnu::hot]] std::exception_ptr MovingPlanes::put(const Program& program, std::vector<BoundMemory>& memory) {
  try {
    put_inside(program.bound, memory);
    return nullptr;
  } catch (const PlanError&) {  // others may have values with which nothing is wrong, and wait for what this rank sends
    put_aside(program, memory);
    return std::current_exception();
  }
}

/// Throws PlanError where one is outside that must not be.
[[gnu::hot]] void MovingPlanes::put_inside(const BoundPlan& bound, std::vector<BoundMemory>& memory) const {
  for (const Moving& plane : planes_) {
    const std::optional<std::int64_t> offset = offset_bytes(bound, plane);
    const auto b = static_cast<std::size_t>(plane.reference->id);
    const BoundMemory& whole = memory[static_cast<std::size_t>(bound.model->buffers[b].plane->buffer)];
    const auto bytes = static_cast<std::size_t>(offset.value_or(0));
    if (!offset) memory[b] = {};
    else if (whole.base) memory[b] = {whole.base + bytes, whole.bytes - bytes, whole.is_seldom_written};
  }
}

/// Puts them, and copies of all else that is written, in memory of its own.
void MovingPlanes::put_aside(const Program& program, std::vector<BoundMemory>& memory) {
  std::vector<BoundMemory> replaced = memory;
  aside_.clear();
  const PlanModel& plan = *program.bound.model;
  std::set<int> buffers;
  for (const Moving& plane : planes_) buffers.insert(plane.reference->id);
  for (const Statement& s : plan.statements)
    for (const Reduction& r : s.reductions) buffers.insert(r.place->id);
  for (const int number : buffers) {
    const auto b = static_cast<std::size_t>(number);
    const Buffer& buffer = plan.buffers[b];
    const std::size_t bytes = static_cast<std::size_t>(program.bound.state.layouts[b].extent) * buffer.type.size_bytes;
    if (bytes == 0 || (!buffer.plane && !memory[b].base)) continue;
    std::vector<std::byte>& aside = aside_.emplace_back(bytes);
    if (!buffer.plane) std::copy_n(memory[b].base, bytes, aside.begin());
    replaced[b] = {aside.data(), bytes};
  }
  bound_ = std::exchange(memory, std::move(replaced));
}

}  // namespace kplan
