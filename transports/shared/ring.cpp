// How it works: a single producer, and mostly a single consumer. The sender writes the bytes and then the slot's word
// with release; the receiver reads the word with acquire and then the bytes; the counter of released messages goes back
// the same way, and the sender looks at it only when its last look leaves it no slot. Several receivers only read what
// they have in common, and the sender looks at the counters of all.
//
// A ring of much memory begins with a few of its slots: channels that carry few messages touch no more. Both ends go
// over to all slots at the same message, one that comes to the first slot either way; until those before it are
// released, the sender is at most the few ahead, so that no slot is met twice.
//
// Behind the counter of released messages the first receiver says what it has measured in the last trial
// (store_trial.hpp).
//
// A lent message lies in the sender's own memory, whose names are in the slot. The sender may want it back (the
// receiver does not come for it), or go (an exception, say). So the receiver marks such a message as taken before it
// reads, the sender takes back only what is not taken, and one that closes waits for what is.
//
// Where messages lie that are fetched, the sender keeps a list of; its receiver copies it when it sees that it is new.
#include "transports/shared/ring.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "transports/ends.hpp"
#include "transports/pause.hpp"
#include "transports/shared/memory.hpp"
#include "transports/shared/store_trial.hpp"

namespace kplan::transport {
namespace {

constexpr std::size_t line_bytes = 64;
using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free);

/// How a message lies in its slot; the low two bits of the slot's word.
enum class Hold : std::uint64_t {
  packed = 0,    ///< in the slot's own memory
  lent = 1,      ///< in the sender's memory, nobody reads it yet
  taken = 2,     ///< in the sender's memory, the receiver may be reading it
  returned = 3,  ///< it was lent, and is not any more
};

std::size_t receivers_of(const ChannelSpec& sender) { return 1 + sender.other_receivers.size(); }

std::uint64_t word_of(std::uint64_t seq, Hold hold) { return 4 * (seq + 1) + static_cast<std::uint64_t>(hold); }

/// What a slot holds of a lent message.
struct Loan {
  std::uint64_t regions = 0;                                  ///< 0: one region, which is the message itself
  static constexpr std::uint64_t to_be_fetched = UINT64_MAX;  ///< then a PlaceName follows
  RegionName names[1];                                        ///< as many as there are
};

/// What a slot holds of a message that is to be fetched: where its sender's process lists the regions it lies in.
struct PlaceName {
  const iovec* list = nullptr;
  std::uint64_t list_bytes = 0;
  std::uint64_t number = 0;  ///< of its places, from 1 on
};
constexpr std::size_t names_at = offsetof(Loan, names);

std::size_t slot_bytes(std::size_t capacity_bytes) {
  const std::size_t bytes = capacity_bytes + sizeof(Word);
  if (bytes <= line_bytes / 2) return std::bit_ceil(bytes);  // several to a line
  return (bytes + line_bytes - 1) / line_bytes * line_bytes;
}

/// The memory of one ring: a line for what each receiver says, then the slots.
class Ring {
 public:
  Ring(RingMemory memory, const ChannelSpec& spec, std::size_t receivers)
      : memory_(std::move(memory)),
        receivers_(receivers),
        slots_base_(memory_.base + receivers * line_bytes),
        slot_bytes_(slot_bytes(spec.capacity_bytes)),
        slots_(static_cast<std::uint64_t>(spec.slots)),
        mask_((slots_ & (slots_ - 1)) == 0 ? slots_ - 1 : 0),
        few_(std::clamp<std::uint64_t>(bytes_of_few / slot_bytes_, std::min<std::uint64_t>(2, slots_), slots_)),
        grown_at_(few_ < slots_ ? few_ * slots_ : 0) {}

  /// By how many the sender may be ahead when it sends that message.
  std::uint64_t most_ahead(std::uint64_t seq) const { return seq < grown_at_ + few_ && grown_at_ > 0 ? few_ : slots_; }
  std::size_t bytes_of_a_slot() const { return slot_bytes_; }
  std::byte* slot(std::uint64_t seq) const {
    if (seq < grown_at_) [[unlikely]]
      return slots_base_ + seq % few_ * slot_bytes_;
    return slots_base_ + (mask_ != 0 ? seq & mask_ : seq % slots_) * slot_bytes_;
  }
  /// Whether the receiver has read the message's slot before.
  bool is_worn(std::uint64_t seq) const { return seq < grown_at_ ? seq >= few_ : seq >= grown_at_ + slots_; }
  Word& word(std::byte* slot) const { return *reinterpret_cast<Word*>(slot + slot_bytes_ - sizeof(Word)); }
  Word& released(std::size_t receiver) const { return *reinterpret_cast<Word*>(memory_.base + receiver * line_bytes); }
  /// How many all receivers have released.
  std::uint64_t released_by_all() const {
    std::uint64_t out = released(0).load(std::memory_order_acquire);
    for (std::size_t k = 1; k < receivers_; ++k) out = std::min(out, released(k).load(std::memory_order_acquire));
    return out;
  }
  void clear_words() const {
    for (std::uint64_t k = 0; k < slots_; ++k) word(slots_base_ + k * slot_bytes_).store(0, std::memory_order_relaxed);
  }
  bool has_several_receivers() const { return receivers_ > 1; }
  // What only the first receiver says.
  Word& is_receiver_closed() const { return *reinterpret_cast<Word*>(memory_.base + sizeof(Word)); }
  Word& reading_times() const { return *reinterpret_cast<Word*>(memory_.base + 2 * sizeof(Word)); }
  StoreTrial trial() const {
    constexpr std::size_t fewest_bytes = 512;
    return {grown_at_, slots_, slot_bytes_ >= fewest_bytes};
  }
  std::size_t most_regions() const { return (slot_bytes_ - sizeof(Word) - names_at) / sizeof(RegionName); }
  bool has_room_for(std::size_t bytes) const { return bytes <= slot_bytes_ - sizeof(Word); }

 private:
  RingMemory memory_;
  std::size_t receivers_;
  std::byte* slots_base_;
  std::size_t slot_bytes_;
  std::uint64_t slots_, mask_;
  static constexpr std::size_t bytes_of_few = std::size_t{160} << 10;
  std::uint64_t few_, grown_at_;  ///< messages before that one go through the first few slots
};

/// Fetches the lines of a slot to be written, all at once: the receiver's core has read them, and a core that writes
/// such lines waits for one after the other.
[[gnu::always_inline]] inline void own_lines(std::byte* slot, std::size_t bytes) {
#if defined(__x86_64__)
  for (std::size_t k = 0; k < bytes; k += line_bytes) asm volatile("prefetchw %0" : : "m"(slot[k]));
#else
  for (std::size_t k = 0; k < bytes; k += line_bytes) __builtin_prefetch(slot + k, 1);
#endif
}

class Sender final : public SendingEnd {
 public:
  Sender(RingMemory memory, const ChannelSpec& spec, std::shared_ptr<RegionNames> names,
         std::shared_ptr<Distance> distance)
      : ring_(std::move(memory), spec, receivers_of(spec)),
        names_(std::move(names)),
        distance_(std::move(distance)),
        trial_(ring_.trial()) {}
  ~Sender() override;

  [[gnu::hot]] std::byte* send_slot(std::uint64_t seq) override {
    if (const std::uint64_t most_ahead = ring_.most_ahead(seq); seq >= released_ + most_ahead) {
      released_ = ring_.released_by_all();
      if (seq >= released_ + most_ahead) return nullptr;
    }
    std::byte* const slot = ring_.slot(seq);
    if (const std::size_t bytes = ring_.bytes_of_a_slot(); bytes <= most_to_own && stores_ == Stores::cached)
      own_lines(slot, bytes);
    return slot;
  }

  [[gnu::hot]] bool is_far(std::uint64_t seq) override {
    return distance_->is_far(ring_.is_worn(seq) ? ring_.slot(seq) : nullptr, ring_.bytes_of_a_slot());
  }

  Stores best_stores(std::uint64_t seq) override { return stores_ = stores_for(seq); }

  [[gnu::hot]] void put(std::uint64_t seq, std::size_t) override {
    if (std::exchange(is_timing_, false)) [[unlikely]]
      times_.add(trial_.sample(seq), Clock::now() - begin_);
    if (lent_end_ == seq + 1) lent_end_ = lent_before_;  // it was lent, and came back
    publish(seq, Hold::packed);
  }

  void put_in_place(std::uint64_t seq, const std::byte* region, std::size_t bytes) override {
    if (lend_as(seq, 0, {&region, 1})) return;
    std::memcpy(ring_.slot(seq), region, bytes);
    put(seq, bytes);
  }

  bool lend(std::uint64_t seq, std::span<const std::byte* const> regions) override {
    return !regions.empty() && lend_as(seq, regions.size(), regions);
  }

  void place(std::span<const Blocks> blocks) override {
    if (place_.move_to(blocks))
      place_name_ = {place_.regions().data(), place_.regions().size_bytes(), place_name_.number + 1};
  }

  bool lend_to_fetch(std::uint64_t seq) override {
    if (!ring_.has_room_for(names_at + sizeof(PlaceName)) || ring_.has_several_receivers()) return false;
    std::byte* const slot = ring_.slot(seq);
    std::memcpy(slot, &Loan::to_be_fetched, sizeof Loan::to_be_fetched);
    std::memcpy(slot + names_at, &place_name_, sizeof place_name_);
    publish_loan(seq);
    return true;
  }

  bool take_back(std::uint64_t seq) override {
    std::uint64_t word = word_of(seq, Hold::lent);
    return ring_.word(ring_.slot(seq))
               .compare_exchange_strong(word, word_of(seq, Hold::returned), std::memory_order_acq_rel) ||
           word == word_of(seq, Hold::returned);
  }

  bool is_sent(std::uint64_t seq) override {
    const std::uint64_t needed = std::min(seq + 1, lent_end_);
    if (released_ < needed) released_ = ring_.released_by_all();
    return released_ >= needed;
  }

 private:
  Stores stores_for(std::uint64_t seq) {
    const bool is_far_now = is_far(seq);
    if (trial_.is_tried(seq)) [[unlikely]] {
      if (trial_.is_first(seq) && (is_trying_ = is_far_now && seq >= next_trial_)) {
        times_.clear();
        next_trial_ = seq + StoreTrial::again_after;
      }
      if (is_trying_) {
        if ((is_timing_ = trial_.is_timed(seq))) begin_ = Clock::now();
        return trial_.way(seq);
      }
    } else if (is_trying_ && trial_.is_over(seq)) [[unlikely]] {
      is_trying_ = false;
      way_ =
          TrialMedians::fastest(times_.medians(), TrialMedians(ring_.reading_times().load(std::memory_order_acquire)));
    }
    return is_far_now ? way_ : Stores::cached;
  }

  bool lend_as(std::uint64_t seq, std::size_t count, std::span<const std::byte* const> regions) {
    if (regions.size() > ring_.most_regions() || ring_.has_several_receivers()) return false;
    std::byte* const slot = ring_.slot(seq);
    const std::uint64_t head = count;
    std::memcpy(slot, &head, sizeof head);
    for (std::size_t k = 0; k < regions.size(); ++k) {
      const std::optional<RegionName> name = names_->name_of(regions[k]);
      if (!name) return false;
      std::memcpy(slot + names_at + k * sizeof(RegionName), &*name, sizeof(RegionName));
    }
    publish_loan(seq);
    return true;
  }

  void publish_loan(std::uint64_t seq) {
    publish(seq, Hold::lent);
    lent_before_ = std::exchange(lent_end_, seq + 1);
  }

  void publish(std::uint64_t seq, Hold hold) {
    ring_.word(ring_.slot(seq)).store(word_of(seq, hold), std::memory_order_release);
    put_ = seq + 1;
  }

  static constexpr std::size_t most_to_own = 4096 + line_bytes;

  Ring ring_;
  std::shared_ptr<RegionNames> names_;
  std::shared_ptr<Distance> distance_;
  StoreTrial trial_;
  TrialTimes times_;  ///< of writing
  Clock::time_point begin_;
  Stores way_ = Stores::non_temporal;  ///< the fastest where lines are far
  Stores stores_ = Stores::cached;     ///< of the last message
  bool is_trying_ = false, is_timing_ = false;
  std::uint64_t next_trial_ = 0;  ///< not before that message
  std::uint64_t put_ = 0;
  std::uint64_t lent_end_ = 0;     ///< one more than the last message that was lent
  std::uint64_t lent_before_ = 0;  ///< the same of the one before it
  std::uint64_t released_ = 0;     ///< when last looked
  Place place_;                    ///< of messages that are fetched
  PlaceName place_name_;
};

Sender::~Sender() {
  // A receiver that keeps a taken message this long waits for something else; it gets an error for that sooner or
  // later, and until then the sender cannot be held.
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(1);
  for (std::uint64_t seq = ring_.released_by_all(); seq < put_; ++seq) {
    if (take_back(seq) || ring_.word(ring_.slot(seq)).load(std::memory_order_relaxed) != word_of(seq, Hold::taken))
      continue;
    const auto is_being_read = [&] {
      return ring_.released_by_all() <= seq && ring_.is_receiver_closed().load(std::memory_order_acquire) == 0;
    };
    for (unsigned idle = 0; is_being_read() && Clock::now() < deadline; ++idle) pause_thread(idle, true);
  }
}

class Receiver final : public ReceivingEnd {
 public:
  Receiver(OfferedRing ring, const ChannelSpec& spec, std::shared_ptr<RegionNames> names,
           std::shared_ptr<Distance> distance)
      : ring_(std::move(ring.memory), spec, ring.place.count),
        number_(ring.place.number),
        names_(std::move(names)),
        distance_(std::move(distance)),
        peer_(spec.peer),
        trial_(ring_.trial()) {}
  ~Receiver() override {
    if (number_ == 0) ring_.is_receiver_closed().store(1, std::memory_order_release);
  }

  [[gnu::hot]] const std::byte* arrived(std::uint64_t seq) override {
    std::byte* const slot = ring_.slot(seq);
    std::uint64_t word = ring_.word(slot).load(std::memory_order_acquire);
    if (word == word_of(seq, Hold::packed)) {
      if (trial_.is_tried(seq)) [[unlikely]]
        begin_time(seq);
      return slot;
    }
    const bool is_taken =
        word == word_of(seq, Hold::taken) ||
        (word == word_of(seq, Hold::lent) &&
         ring_.word(slot).compare_exchange_strong(word, word_of(seq, Hold::taken), std::memory_order_acq_rel));
    if (!is_taken) return nullptr;
    if (!find_regions(slot)) {
      decline(seq);
      return nullptr;
    }
    return is_whole_ ? lent_[0] : slot;
  }

  bool is_far(std::uint64_t seq) override {
    // The first lines may have been read. Of several receivers, others may be reading.
    constexpr std::size_t unread = 2 * line_bytes;
    const bool has_line = ring_.bytes_of_a_slot() > unread && !ring_.has_several_receivers();
    return distance_->is_far(has_line ? ring_.slot(seq) + unread : nullptr, ring_.bytes_of_a_slot());
  }

  [[gnu::hot]] std::span<const std::byte* const> lent(std::uint64_t seq) override {
    if (!is_taken(seq) || is_whole_ || is_to_be_fetched_) return {};
    return lent_;
  }

  [[gnu::hot]] bool is_to_be_fetched(std::uint64_t seq) override { return is_taken(seq) && is_to_be_fetched_; }

  void place(std::span<const Blocks> blocks) override { place_.move_to(blocks); }

  bool fetch(std::uint64_t) override {
    return names_->copy(peer_, RegionCursor(their_regions_), RegionCursor(place_.regions()));
  }

  bool fetch_part(std::uint64_t, std::size_t offset_bytes, std::byte* to, std::size_t bytes) override {
    if (std::exchange(fetched_, offset_bytes + bytes) != offset_bytes || offset_bytes == 0) {
      next_ = RegionCursor(their_regions_);
      next_.advance(offset_bytes);
    }
    const iovec part{to, bytes};
    if (!names_->copy(peer_, next_, RegionCursor({&part, 1}))) return false;
    next_.advance(bytes);
    return true;
  }

  void decline(std::uint64_t seq) override {
    ring_.word(ring_.slot(seq)).store(word_of(seq, Hold::returned), std::memory_order_release);
  }

  [[gnu::hot]] void release(std::uint64_t seq) override {
    if (trial_.is_tried(seq)) [[unlikely]]
      end_time(seq);
    ring_.released(number_).store(seq + 1, std::memory_order_release);
  }

 private:
  bool is_taken(std::uint64_t seq) const {
    return ring_.word(ring_.slot(seq)).load(std::memory_order_relaxed) == word_of(seq, Hold::taken);
  }
  [[gnu::noinline]] void begin_time(std::uint64_t seq) {
    if (!trial_.is_timed(seq) || timed_ == seq) return;
    timed_ = seq;
    begin_ = Clock::now();
  }
  [[gnu::noinline]] void end_time(std::uint64_t seq) {
    if (trial_.is_first(seq)) times_.clear();
    if (timed_ == seq) times_.add(trial_.sample(seq), Clock::now() - begin_);
    if (trial_.is_last(seq) && number_ == 0)
      ring_.reading_times().store(times_.medians().word(), std::memory_order_relaxed);
  }
  [[gnu::noinline]] bool find_regions(const std::byte* slot) {
    std::uint64_t regions = 0;
    std::memcpy(&regions, slot, sizeof regions);
    is_whole_ = regions == 0;
    is_to_be_fetched_ = regions == Loan::to_be_fetched;
    lent_.clear();
    if (is_to_be_fetched_) {
      PlaceName name;
      std::memcpy(&name, slot + names_at, sizeof name);
      return find_place(name);
    }
    for (std::size_t k = 0; k < std::max<std::uint64_t>(regions, 1); ++k) {
      RegionName name;
      std::memcpy(&name, slot + names_at + k * sizeof name, sizeof name);
      lent_.push_back(names_->find(peer_, name));
      if (lent_.back() == nullptr) return false;
    }
    return true;
  }

  /// Copies the list of regions where it is new. False where it cannot be had.
  bool find_place(const PlaceName& name) {
    if (std::exchange(their_place_, name.number) == name.number) return true;
    their_regions_.resize(name.list_bytes / sizeof(iovec));
    const iovec list{const_cast<iovec*>(name.list), name.list_bytes},  // only read
        copy{their_regions_.data(), name.list_bytes};
    if (names_->copy(peer_, RegionCursor({&list, 1}), RegionCursor({&copy, 1}))) return true;
    their_place_ = 0;
    return false;
  }

  Ring ring_;
  std::size_t number_;  ///< among the receivers
  std::shared_ptr<RegionNames> names_;
  std::shared_ptr<Distance> distance_;
  int peer_;
  StoreTrial trial_;
  TrialTimes times_;  ///< of reading
  Clock::time_point begin_;
  std::uint64_t timed_ = UINT64_MAX;    ///< the message since then
  std::vector<const std::byte*> lent_;  ///< of the message that was looked at last
  bool is_whole_ = false, is_to_be_fetched_ = false;
  Place place_;                       ///< of messages that are fetched
  std::vector<iovec> their_regions_;  ///< where they lie at the sender's, in its process
  std::uint64_t their_place_ = 0;     ///< the number of that; 0: not known
  RegionCursor next_;                 ///< of them, where the next part of a message lies
  std::size_t fetched_ = 0;           ///< bytes before that
};

}  // namespace

std::size_t ring_bytes(const ChannelSpec& sender) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / 4;
  const auto slots = static_cast<std::size_t>(sender.slots);
  if (sender.capacity_bytes > most / slots - 2 * line_bytes) throw std::bad_alloc();
  return line_bytes * receivers_of(sender) + slot_bytes(sender.capacity_bytes) * slots;
}

int best_ring_slots(std::size_t bytes, int ranks, bool share_cores) {
  constexpr std::size_t most_slots = 32, most_ranks = 16;
  if (constexpr std::size_t short_turn = 8192, fewest_slots = 8; !share_cores && bytes <= short_turn / 2)
    return static_cast<int>(std::clamp(short_turn / std::max<std::size_t>(bytes, 1), fewest_slots, most_slots));
  const std::size_t bytes_in_turn = share_cores ? std::size_t{64} << 10 : std::size_t{2} << 20;
  const std::size_t share =
      bytes_in_turn * most_ranks / std::max<std::size_t>(static_cast<std::size_t>(ranks), most_ranks);
  return static_cast<int>(std::clamp<std::size_t>(share / std::max<std::size_t>(bytes, 1), 2, most_slots));
}

RingMemory new_ring(const ChannelSpec& sender) {
  std::shared_ptr<std::byte> zeros = zeroed_memory(ring_bytes(sender));
  std::byte* const base = zeros.get();
  return {std::move(zeros), base};
}

void clear_ring(std::byte* base, const ChannelSpec& sender) {
  const Ring ring({nullptr, base}, sender, receivers_of(sender));
  std::memset(base, 0, line_bytes * receivers_of(sender));
  ring.clear_words();
}

std::unique_ptr<Channel> sending_end(RingMemory memory, const ChannelSpec& spec, std::shared_ptr<RegionNames> names,
                                     std::shared_ptr<Distance> distance) {
  return std::make_unique<Sender>(std::move(memory), spec, std::move(names), std::move(distance));
}

std::unique_ptr<Channel> receiving_end(OfferedRing ring, const ChannelSpec& spec, std::shared_ptr<RegionNames> names,
                                       std::shared_ptr<Distance> distance) {
  return std::make_unique<Receiver>(std::move(ring), spec, std::move(names), std::move(distance));
}

}  // namespace kplan::transport
