#include <cstring>

#include "transports/ends.hpp"

namespace kplan::transport {
namespace {

struct Whole {
  std::unique_ptr<Channel> channel;
  std::size_t bytes = 0, parts = 0;
  std::size_t done = 0;  ///< parts of the message at hand that were put, or released
  bool is_last() {
    if (++done < parts) return false;
    done = 0;
    return true;
  }
};

class SentPart final : public SendingEnd {
 public:
  SentPart(std::shared_ptr<Whole> whole, std::size_t offset) : whole_(std::move(whole)), offset_(offset) {}

  std::byte* send_slot(std::uint64_t seq) override {
    std::byte* const slot = whole_->channel->send_slot(seq);
    return slot ? slot + offset_ : nullptr;
  }
  void put(std::uint64_t seq, std::size_t) override {
    if (whole_->is_last()) whole_->channel->put(seq, whole_->bytes);
  }
  void put_in_place(std::uint64_t seq, const std::byte* region, std::size_t bytes) override {
    std::memcpy(send_slot(seq), region, bytes);
    put(seq, bytes);
  }
  bool is_sent(std::uint64_t seq) override { return whole_->channel->is_sent(seq); }

 private:
  std::shared_ptr<Whole> whole_;
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

}  // namespace

std::vector<std::unique_ptr<Channel>> parts_of(std::unique_ptr<Channel> channel, Direction direction,
                                               std::span<const std::size_t> offsets_bytes, std::size_t message_bytes) {
  const auto whole = std::make_shared<Whole>();
  whole->channel = std::move(channel);
  whole->bytes = message_bytes;
  whole->parts = offsets_bytes.size();
  std::vector<std::unique_ptr<Channel>> out;
  for (const std::size_t offset : offsets_bytes) {
    if (direction == Direction::send) out.push_back(std::make_unique<SentPart>(whole, offset));
    else out.push_back(std::make_unique<ReceivedPart>(whole, offset));
  }
  return out;
}

}  // namespace kplan::transport
