#include "engine/runtime/uniform_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engine/analysis/knowledge.hpp"
#include "engine/schedule/schedule.hpp"
#include "plans/hash.hpp"

namespace kplan {

UniformHash::UniformHash(const PlanModel& plan) : parameters_(uniform_varying_parameters(plan)) {}

UniformHash::UniformHash(const PlanModel& plan, const Statement& s) : UniformHash(plan) {
  for (const int b : touched_by(plan, s).reads) {
    const Buffer& buffer = plan.buffers[static_cast<std::size_t>(b)];
    if (buffer.is_uniform && buffer.is_varying) buffers_.push_back(b);
  }
}

[[gnu::hot]] std::uint64_t UniformHash::of(const BoundPlan& bound) const {
  std::uint64_t out = 0;
  for (const int p : parameters_) {
    const ScalarValue& value = bound.state.parameters[static_cast<std::size_t>(p)];
    out = mixed(mixed(out, value.bits[0]), value.bits[1]);
  }
  for (const int b : buffers_) {
    const auto n = static_cast<std::size_t>(b);
    if (!bound.state.contents[n]) continue;
    const std::size_t size = bound.model->buffers[n].type.size_bytes;
    each_run(bound.state.layouts[n], [&](std::int64_t first, std::int64_t count) {
      const auto begin = static_cast<std::size_t>(first) * size, bytes = static_cast<std::size_t>(count) * size;
      out = mixed(out, hash64({bound.state.contents[n] + begin, bytes}));
    });
  }
  return out;
}

std::vector<int> ring_neighbours(int rank, int size) {
  if (size == 1) return {};
  std::vector<int> out{(rank + 1) % size, (rank + size - 1) % size};
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

UniformCheck::UniformCheck(const PlanModel& plan, transport::Transport& transport,
                           transport::Clock::time_point deadline)
    : plan_(plan), rank_(transport.rank()), parameters_(uniform_varying_parameters(plan)) {
  const int size = transport.size();
  if (size == 1 || parameters_.empty()) return;
  exchange_ = transport.open_exchange(deadline);
  neighbours_ = ring_neighbours(rank_, size);
  mine_ = std::make_shared<std::vector<std::uint64_t>>(2 * parameters_.size());
  exchange_->keep(mine_);
}

void UniformCheck::begin(const BoundPlan& bound, std::span<const int> neighbours) {
  std::uint64_t* to = mine_->data();
  for (const int p : parameters_) {
    const ScalarValue& value = bound.state.parameters[static_cast<std::size_t>(p)];
    *to++ = value.bits[0];
    *to++ = value.bits[1];
  }
  letters_.clear();
  asked_.assign(neighbours.begin(), neighbours.end());
  for (const int rank : asked_) letters_.push_back({rank, std::as_bytes(std::span(*mine_))});
  exchange_->begin(letters_, asked_);
  is_comparing_ = true;
}

[[gnu::hot]] std::exception_ptr UniformCheck::look() {
  is_comparing_ = !exchange_->is_complete();
  return compared();
}

[[gnu::hot]] std::exception_ptr UniformCheck::compared() const {
  const std::span<const std::byte> mine = std::as_bytes(std::span(*mine_));
  for (const transport::ReceivedLetter& letter : exchange_->received()) {
    if (letter.bytes.size() != mine.size())
      return std::make_exception_ptr(TransportError(
          "KP-T012", "a comparison of uniform parameters has come damaged; do all ranks run one build?"));
    if (std::memcmp(letter.bytes.data(), mine.data(), mine.size()) == 0) continue;
    if (auto out = difference(letter)) return out;
  }
  return nullptr;
}

/// Null where the values only have other bits.
std::exception_ptr UniformCheck::difference(const transport::ReceivedLetter& letter) const {
  for (std::size_t k = 0; k < parameters_.size(); ++k) {
    const Parameter& p = plan_.parameters[static_cast<std::size_t>(parameters_[k])];
    ScalarValue mine{p.type, {(*mine_)[2 * k], (*mine_)[2 * k + 1]}}, theirs{p.type, {}};
    std::memcpy(theirs.bits, letter.bytes.data() + k * sizeof theirs.bits, sizeof theirs.bits);
    const std::string here = to_text(mine), there = to_text(theirs);
    if (here == there) continue;
    const bool is_first = rank_ < letter.from;
    return std::make_exception_ptr(
        PlanError("KP-A002", fmt::format("plan {}: uniform parameter `{}` was set to {} on rank {} and to {} on rank "
                                         "{}; set it alike on all ranks",
                                         plan_.name, p.name, is_first ? here : there, std::min(rank_, letter.from),
                                         is_first ? there : here, std::max(rank_, letter.from))));
  }
  return nullptr;
}

}  // namespace kplan
