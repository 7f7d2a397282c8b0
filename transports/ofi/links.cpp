// How it works: two tables, of links and of slots. Numbers that are free are taken again, slots in runs of the same
// length, since channels come and go in kinds.
#include "transports/ofi/links.hpp"

#include "kplan/error.hpp"

namespace kplan::transport::ofi_backend {
namespace {

[[noreturn]] void refuse(const char* what, std::uint32_t number) {
  throw InternalError(
      "KP-X003", std::string("a message came for ") + what + " " + std::to_string(number) + ", which there is not");
}

}  // namespace

std::uint32_t Links::add(std::unique_ptr<Link> link) {
  if (free_links_.empty()) {
    links_.push_back(std::move(link));
    free_links_.reserve(links_.size());
    return static_cast<std::uint32_t>(links_.size() - 1);
  }
  const std::uint32_t number = free_links_.back();
  free_links_.pop_back();
  links_[number] = std::move(link);
  return number;
}

std::uint32_t Links::add_slots(SlotOwner& owner, std::uint32_t count) {
  std::vector<std::uint32_t>& free = free_slots_[count];
  auto first = static_cast<std::uint32_t>(slots_.size());
  if (free.empty()) {
    slots_.resize(slots_.size() + count);
  } else {
    first = free.back();
    free.pop_back();
  }
  for (std::uint32_t index = 0; index < count; ++index) slots_[first + index] = {&owner, index};
  return first;
}

void Links::remove_slots(std::uint32_t first, std::uint32_t count) {
  for (std::uint32_t index = 0; index < count; ++index) slots_[first + index] = {};
  free_slots_[count].push_back(first);
}

Link& Links::at(std::uint32_t number) {
  if (number >= links_.size() || !links_[number]) refuse("channel end", number);
  return *links_[number];
}

Links::Slot Links::slot(std::uint32_t number) const {
  if (number >= slots_.size() || slots_[number].owner == nullptr) refuse("slot", number);
  return slots_[number];
}

void Links::review(std::uint32_t number) {
  if (!at(number).is_over()) return;
  links_[number].reset();
  free_links_.push_back(number);
}

std::vector<int> Links::unsettled() const {
  std::vector<int> out;
  for (const auto& link : links_) {
    if (link && link->unsettled_with() != anybody) out.push_back(link->unsettled_with());
  }
  return out;
}

}  // namespace kplan::transport::ofi_backend
