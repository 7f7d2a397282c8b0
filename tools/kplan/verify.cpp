// How it works: the memory of every rank is made anew from the same contents and handed to the reference interpreter.
#include "tools/kplan/verify.hpp"

#include <fmt/format.h>

namespace kplan::cli {

void Expectation::interpret() {
  for (std::int64_t rank = 0; rank < size_; ++rank) {
    RankMemory memory = contents_.memory(rank, size_);
    ReferenceRank simulated{std::move(memory.parameters), {}};
    for (BufferMemory& b : memory.buffers) simulated.buffers.emplace_back(b.bytes().begin(), b.bytes().end());
    world_.push_back(std::move(simulated));
  }
  for (std::int64_t k = 0; k < repeat_; ++k) run_reference(contents_.plan().model(), world_);
}

void Expectation::compare(const RankMemory& mine) {
  std::call_once(once_, [&] {
    try {
      interpret();
    } catch (const Error&) {
      failure_ = std::current_exception();
    }
  });
  if (failure_) {
    try {
      std::rethrow_exception(failure_);
    } catch (const Error& e) {
      throw RunError("KP-V002", fmt::format("not verified, the reference interpreter does not run this: {}", e.what()));
    }
  }
  const PlanModel& plan = contents_.plan().model();
  for (std::size_t b = 0; b < plan.buffers.size(); ++b)
    if (const auto difference =
            first_difference(plan.buffers[b], mine, b, world_[static_cast<std::size_t>(mine.rank)].buffers[b]))
      throw RunError("KP-V001", *difference);
}

}  // namespace kplan::cli
