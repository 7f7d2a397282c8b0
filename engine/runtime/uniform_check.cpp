#include "engine/runtime/uniform_check.hpp"

#include <algorithm>
#include <cstring>

#include "engine/analysis/knowledge.hpp"
#include "engine/schedule/schedule.hpp"
#include "plans/hash.hpp"

namespace kplan {

UniformHash::UniformHash(const PlanModel& plan, const Statement& s) : parameters_(uniform_varying_parameters(plan)) {
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

UniformCheck::UniformCheck(const PlanModel& plan, bool do_patterns_vary, transport::Transport& transport,
                           transport::Clock::time_point deadline)
    : rank_(transport.rank()), values_(plan) {
  const int size = transport.size();
  if (size == 1 || values_.size() == 0 || !do_patterns_vary) return;
  exchange_ = transport.open_exchange(deadline);
  neighbours_ = ring_neighbours(rank_, size);
  mine_ = std::make_shared<std::vector<std::uint64_t>>(values_.size());
  exchange_->keep(mine_);
}

void UniformCheck::begin(const BoundPlan& bound, std::uint64_t run, std::span<const int> neighbours) {
  run_ = run;
  values_.read(bound);
  std::ranges::copy(values_.words(), mine_->begin());
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
  const std::size_t bytes = mine_->size() * sizeof mine_->front();
  for (const transport::ReceivedLetter& letter : exchange_->received()) {
    if (letter.bytes.size() != bytes)
      return std::make_exception_ptr(TransportError(
          "KP-T012", "a comparison of uniform parameters has come damaged; do all ranks run one build?"));
    if (std::memcmp(letter.bytes.data(), mine_->data(), bytes) == 0) continue;
    std::vector<std::uint64_t> theirs(mine_->size());
    std::memcpy(theirs.data(), letter.bytes.data(), bytes);
    return values_.difference(run_, {rank_, *mine_}, {letter.from, theirs});
  }
  return nullptr;
}

}  // namespace kplan
