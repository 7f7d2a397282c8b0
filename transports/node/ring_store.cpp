// How it works: rooms of one segment follow each other; each begins with a count of the neighbours that have it. What
// lies behind the last room that somebody has is used again, so a plan that comes when others have gone finds memory
// that is mapped everywhere and in the caches. A full segment goes when nobody has any room of it. The first line of a
// segment tells neighbours when its owner has let it go. Long rooms have segments of their own, which go with them.
#include "transports/node/ring_store.hpp"

#include <algorithm>
#include <atomic>

namespace kplan::transport::node_path {
namespace {

constexpr std::size_t line_bytes = 64, page_bytes = 4096;
constexpr std::size_t segment_bytes = std::size_t{4} << 20, most_shared_bytes = segment_bytes / 8 * 5;

using Count = std::atomic<std::uint64_t>;
static_assert(Count::is_always_lock_free && sizeof(Count) <= line_bytes);

/// Whether a segment's owner has let it go.
Count& has_gone(const Segment& segment) { return *reinterpret_cast<Count*>(segment.data()); }
/// Neighbours that have a room.
Count& users(const Segment& segment, std::uint64_t offset) {
  return *reinterpret_cast<Count*>(segment.data() + offset);
}

}  // namespace

/// A segment of this rank's, for many rooms.
struct RingStore::Shared {
  struct Place {
    std::size_t offset, end;
    bool is_held = true;  ///< by this rank
  };
  std::shared_ptr<Segment> segment = Segment::create(segment_bytes);
  std::uint64_t serial;
  std::size_t end = line_bytes;                ///< of the rooms there are
  std::size_t written_end = line_bytes;        ///< of those that there have been
  std::vector<std::shared_ptr<Place>> places;  ///< of the rooms there are, one after the other

  explicit Shared(std::uint64_t s) : serial(s) {}
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { has_gone(*segment).store(1, std::memory_order_release); }

  /// Forgets rooms that nobody has; whether there are others.
  bool keep_used() {
    std::erase_if(places, [&](const auto& place) {
      return !place->is_held && users(*segment, place->offset).load(std::memory_order_acquire) == 0;
    });
    end = places.empty() ? line_bytes : places.back()->end;
    return !places.empty();
  }
};

RingStore::RingStore(std::shared_ptr<Neighbours> neighbours) : neighbours_(std::move(neighbours)) {}
RingStore::~RingStore() = default;

/// The segment in which there is room for so many bytes.
RingStore::Shared& RingStore::shared_segment(std::size_t bytes) {
  std::erase_if(full_, [](const auto& shared) { return !shared->keep_used(); });
  if (open_) open_->keep_used();
  if (!open_ || bytes > segment_bytes - open_->end) {
    auto next = std::make_unique<Shared>(last_serial_ + 1);
    ++last_serial_;
    if (open_) full_.push_back(std::move(open_));
    open_ = std::move(next);
  }
  return *open_;
}

std::pair<Room, RoomCard> RingStore::make(std::size_t bytes) {
  if (bytes > most_shared_bytes) {
    const std::shared_ptr<Segment> segment = Segment::create(bytes);
    unfound_ = segment;
    return {{segment, segment->data()}, {segment->file(), segment->bytes(), 0, 0}};
  }
  const std::size_t room_bytes = (line_bytes + bytes + page_bytes - 1) / page_bytes * page_bytes;
  Shared& shared = shared_segment(room_bytes);
  const auto place = std::make_shared<Shared::Place>(Shared::Place{shared.end, shared.end + room_bytes});
  shared.places.push_back(place);
  shared.end = place->end;
  users(*shared.segment, place->offset).store(0, std::memory_order_relaxed);  // bytes of an earlier ring, perhaps
  const bool is_clean = place->offset >= shared.written_end;
  shared.written_end = std::max(shared.written_end, shared.end);
  std::shared_ptr<void> owner(place.get(), [place, segment = shared.segment](void*) { place->is_held = false; });
  return {{std::move(owner), shared.segment->data() + place->offset + line_bytes, is_clean},
          {shared.segment->file(), segment_bytes, shared.serial, place->offset}};
}

Room RingStore::find(int rank, const RoomCard& card) {
  const auto map = [&] {
    return Segment::open(neighbours_->process(rank), static_cast<int>(card.file), card.segment_bytes);
  };
  if (card.serial == 0) {
    const std::shared_ptr<Segment> segment = map();
    return {segment, segment->data() + card.offset};
  }
  std::erase_if(known_, [](const auto& known) { return has_gone(*known.second).load(std::memory_order_acquire) != 0; });
  auto known = known_.find({rank, card.serial});
  if (known == known_.end()) known = known_.emplace(std::pair(rank, card.serial), map()).first;
  const std::shared_ptr<Segment>& segment = known->second;
  Count& count = users(*segment, card.offset);
  count.fetch_add(1, std::memory_order_relaxed);  // its owner looks after a collective call
  return {{&count, [segment](Count* c) { c->fetch_sub(1, std::memory_order_release); }},
          segment->data() + card.offset + line_bytes};
}

void RingStore::found() {
  for (const auto& shared : full_) shared->segment->close_file();
  if (const auto segment = unfound_.lock()) segment->close_file();
}

}  // namespace kplan::transport::node_path
