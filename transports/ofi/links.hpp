#pragma once
// What a rank has of its channels, from when they open until both ends are closed and all that was sent has come: an
// end that the program closes lives on here, so that nothing late can meet the memory or the number of another.

#include <cstdint>
#include <memory>
#include <vector>

#include "transports/ofi/post.hpp"

namespace kplan::transport::ofi_backend {

/// What one end tells the other.
struct Introduction {
  std::int32_t lane = 0;                  ///< which of the channels of these two ranks in this direction
  Direction direction = Direction::send;  ///< of the end that speaks
  std::uint32_t number = 0;               ///< of this end, among all of its rank
  std::uint32_t first_slot = 0;           ///< of a receiving end: its first slot, among all slots of its rank
  std::uint64_t address = 0;              ///< of the first slot's memory
  std::uint64_t key = 0;
};

class Link {
 public:
  virtual ~Link() = default;
  /// What the end at `number` and the slots from `first_slot` on are to be told to the peer.
  virtual Introduction introduction() const = 0;
  virtual void meet(const Introduction& peer) = 0;
  /// The other end says something.
  virtual void heard(const Note& note) = 0;
  /// Whether nothing can come any more that is meant for it.
  virtual bool is_over() const = 0;
  /// The rank that must still take what it sent; anybody if there is nothing.
  virtual int unsettled_with() const { return anybody; }
};

/// A notification that means nothing.
inline constexpr std::uint32_t no_slot = ~std::uint32_t{0};

/// A receiving end, to which messages come by slot.
class SlotOwner {
 public:
  virtual std::byte* slot_memory(std::uint32_t slot) = 0;
  /// One write of a message has come.
  virtual void written(std::uint32_t slot) = 0;
  /// A message has come by post.
  virtual void filled(std::uint32_t slot) = 0;

 protected:
  ~SlotOwner() = default;
};

/// All links of a rank and their numbers, which are used again when they are over.
class Links {
 public:
  Links() = default;
  ~Links() { links_.clear(); }  // receiving ends give their slots back
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  /// Enters a link, which gets the number that is returned.
  std::uint32_t add(std::unique_ptr<Link> link);
  /// Numbers for the slots of a receiving end.
  std::uint32_t add_slots(SlotOwner& owner, std::uint32_t count);
  void remove_slots(std::uint32_t first, std::uint32_t count);

  Link& at(std::uint32_t number);
  struct Slot {
    SlotOwner* owner = nullptr;
    std::uint32_t index = 0;
  };
  Slot slot(std::uint32_t number) const;

  /// Frees the link if it is over.
  void review(std::uint32_t number);
  /// The ranks that must still take what was sent to them.
  std::vector<int> unsettled() const;

 private:
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::uint32_t> free_links_;
  std::vector<Slot> slots_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> free_slots_;  // first ones, by count
};

}  // namespace kplan::transport::ofi_backend
