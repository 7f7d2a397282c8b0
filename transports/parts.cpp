#include <cstring>

#include "transports/ends.hpp"

namespace kplan::transport {
namespace {

/// What the parts of a channel share.
struct Whole {
  Whole(std::unique_ptr<Channel> its_channel, std::size_t message_bytes, std::size_t its_parts)
      : channel(std::move(its_channel)), bytes(message_bytes), parts(its_parts) {}

  std::unique_ptr<Channel> channel;
  std::size_t bytes, parts;
  std::size_t done = 0;  ///< parts of the message at hand that were put, or released
  bool is_last() {
    if (++done < parts) return false;
    done = 0;
    return true;
  }
};

/// Messages are made in their slots, or in `memory` where these are far.
struct SentWhole : Whole {
  SentWhole(std::unique_ptr<Channel> its_channel, std::size_t message_bytes, std::size_t its_parts, bool may_be_far)
      : Whole(std::move(its_channel), message_bytes, its_parts), memory(may_be_far ? message_bytes : 0) {}

  std::vector<std::byte> memory;  ///< none: slots are near
  std::byte* slot = nullptr;      ///< of the message at hand, once it is there
  std::uint64_t at_hand = 0;
  Stores stores = Stores::cached;

  /// Where message `seq` is made; null while there is no room, and before all parts of the one at hand are put.
  std::byte* begin(std::uint64_t seq) {
    if (!slot) {
      slot = channel->send_slot(at_hand = seq);
      if (slot && !memory.empty()) stores = channel->best_stores(seq);
    }
    if (!slot || seq != at_hand) return nullptr;
    return stores == Stores::cached ? slot : memory.data();
  }
  void end() {
    if (stores != Stores::cached) copy_to_slot(slot, memory.data(), bytes, stores);
    slot = nullptr;
    channel->put(at_hand, bytes);
  }
};

class SentPart final : public SendingEnd {
 public:
  SentPart(std::shared_ptr<SentWhole> whole, std::size_t offset) : whole_(std::move(whole)), offset_(offset) {}

  std::byte* send_slot(std::uint64_t seq) override {
    std::byte* const begin = whole_->begin(seq);
    return begin ? begin + offset_ : nullptr;
  }
  void put(std::uint64_t, std::size_t) override {
    if (whole_->is_last()) whole_->end();
  }
  void put_in_place(std::uint64_t seq, const std::byte* region, std::size_t bytes) override {
    std::memcpy(send_slot(seq), region, bytes);
    put(seq, bytes);
  }
  bool is_sent(std::uint64_t seq) override { return whole_->channel->is_sent(seq); }

 private:
  std::shared_ptr<SentWhole> whole_;
  std::size_t offset_;
};

class ReceivedPart final : public ReceivingEnd {
 public:
  ReceivedPart(std::shared_ptr<Whole> whole, std::size_t offset) : whole_(std::move(whole)), offset_(offset) {}

  const std::byte* arrived(std::uint64_t seq) override {
    const std::byte* const message = whole_->channel->arrived(seq);
    return message ? message + offset_ : nullptr;
  }
  void release(std::uint64_t seq) override {
    if (whole_->is_last()) whole_->channel->release(seq);
  }

 private:
  std::shared_ptr<Whole> whole_;
  std::size_t offset_;
};

template <class Part>
std::vector<std::unique_ptr<Channel>> parts(const auto& whole, std::span<const std::size_t> offsets_bytes) {
  std::vector<std::unique_ptr<Channel>> out;
  for (const std::size_t offset : offsets_bytes) out.push_back(std::make_unique<Part>(whole, offset));
  return out;
}

}  // namespace

std::vector<std::unique_ptr<Channel>> parts_of(std::unique_ptr<Channel> channel, Direction direction,
                                               std::span<const std::size_t> offsets_bytes, std::size_t message_bytes,
                                               bool may_be_far) {
  const std::size_t count = offsets_bytes.size();
  if (direction == Direction::send)
    return parts<SentPart>(std::make_shared<SentWhole>(std::move(channel), message_bytes, count, may_be_far),
                           offsets_bytes);
  return parts<ReceivedPart>(std::make_shared<Whole>(std::move(channel), message_bytes, count), offsets_bytes);
}

}  // namespace kplan::transport
