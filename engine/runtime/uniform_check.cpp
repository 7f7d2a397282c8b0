#include "engine/runtime/uniform_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace kplan {

UniformCheck::UniformCheck(const PlanModel& plan, transport::Transport& transport,
                           transport::Clock::time_point deadline)
    : plan_(plan), rank_(transport.rank()), size_(transport.size()) {
  const auto is_compared = [](const Parameter& p) { return p.is_uniform && p.is_varying; };
  if (size_ > 1 && std::ranges::any_of(plan.parameters, is_compared)) exchange_ = transport.open_exchange(deadline);
}

void UniformCheck::compare(const BoundPlan& bound) {
  mine_.clear();
  for (std::size_t p = 0; p < plan_.parameters.size(); ++p)
    if (plan_.parameters[p].is_uniform && plan_.parameters[p].is_varying)
      mine_ += to_text(bound.state.parameters[p]) + "\n";
  std::vector<int> neighbours{(rank_ + 1) % size_, (rank_ + size_ - 1) % size_};
  std::ranges::sort(neighbours);
  neighbours.erase(std::unique(neighbours.begin(), neighbours.end()), neighbours.end());
  std::vector<transport::OutgoingLetter> letters;
  for (const int rank : neighbours) letters.push_back({rank, std::as_bytes(std::span(mine_))});
  exchange_->begin(letters, neighbours);
}

std::exception_ptr UniformCheck::compared() const {
  for (const transport::ReceivedLetter& letter : exchange_->received()) {
    const std::string theirs(reinterpret_cast<const char*>(letter.bytes.data()), letter.bytes.size());
    if (theirs == mine_) continue;
    std::istringstream a(mine_), b(theirs);
    for (const Parameter& p : plan_.parameters) {
      if (!p.is_uniform || !p.is_varying) continue;
      std::string here, there;
      std::getline(a, here);
      std::getline(b, there);
      if (here == there) continue;
      const bool is_first = rank_ < letter.from;
      return std::make_exception_ptr(
          PlanError("KP-A002", fmt::format("plan {}: uniform parameter `{}` was set to {} on rank {} and to {} on rank "
                                           "{}; set it alike on all ranks",
                                           plan_.name, p.name, is_first ? here : there, std::min(rank_, letter.from),
                                           is_first ? there : here, std::max(rank_, letter.from))));
    }
  }
  return nullptr;
}

}  // namespace kplan
