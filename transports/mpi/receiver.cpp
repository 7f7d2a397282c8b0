// How it works: see sender.cpp. What a receiver does when it has taken a message is what its peers wait for next, so
// the receive is started again when the next message is looked for: this rank has sent its own by then.
#include <algorithm>
#include <cassert>
#include <utility>

#include "transports/ends.hpp"
#include "transports/mpi/channel.hpp"
#include "transports/mpi/message_parts.hpp"
#include "transports/mpi/message_type.hpp"

namespace kplan::transport::mpi_backend {
namespace {

/// Persistent receives of parts, as many as there is memory for, which are started in turn.
class Receives {
 public:
  Receives(World& world, const ChannelSpec& spec, int tag, const MessageParts& parts, std::size_t slots);

  [[gnu::hot]] const std::byte* slot(std::size_t number) const { return memory_.slot(number); }
  /// Parts known to have come.
  [[gnu::hot]] std::uint64_t arrived() const { return arrived_; }
  /// Counts the next part as arrived if it is.
  bool advance(World& world);
  /// Starts the receives of memory that is free again but for that of the parts from `kept` on; whether there were any.
  [[gnu::hot]] bool restart(const World& world, std::uint64_t kept) {
    const std::uint64_t before = started_;
    for (; started_ < kept + requests_.size(); ++started_) start(world, &requests_[started_ % requests_.size()]);
    return started_ != before;
  }
  /// The last ones that no message has found are as if they had not been started.
  void withdraw();
  bool take_next(const MPI_Status& status);
  /// Takes what is left, and whether the sender has said that no more follows.
  bool drain(World& world);
  /// Takes back what is started; what cannot be is left to the world, with the memory.
  void cancel(World& world);
  void leak() { memory_.leak(); }
  /// What was started is another's: nothing comes here any more.
  void give_up() { started_ = arrived_; }

 private:
  bool may_end_;
  SlotMemory memory_;
  std::vector<MPI_Request> requests_;  // by slot and part
  std::uint64_t started_ = 0, arrived_ = 0;
  bool has_ended_ = false;  // the sender said so in the message that would be the next
};

Receives::Receives(World& world, const ChannelSpec& spec, int tag, const MessageParts& parts, std::size_t slots)
    : may_end_(spec.may_leave_messages),
      memory_(spec.capacity_bytes, static_cast<int>(slots)),
      requests_(slots * parts.count, MPI_REQUEST_NULL) {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const std::size_t part = i % parts.count, first = parts.begin(part, spec.capacity_bytes);
    const MessageType message(parts.length(part, spec.capacity_bytes), world.limits().max_count);
    check(MPI_Recv_init(memory_.slot(i / parts.count) + first, message.count(), message.type(), spec.peer, tag,
                        world.comm(), &requests_[i]),
          "MPI_Recv_init");
  }
}

[[gnu::hot]] bool Receives::advance(World& world) {
  if (arrived_ == started_ || has_ended_) return false;
  MPI_Request* const request = &requests_[arrived_ % requests_.size()];
  if (!may_end_) [[likely]] {
    if (!is_complete(world, request)) return false;
    ++arrived_;
    return true;
  }
  MPI_Status status;
  return is_complete(world, request, &status) && take_next(status);
}

/// The next part has come; whether it is one.
bool Receives::take_next(const MPI_Status& status) {
  int bytes = 0;
  check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  has_ended_ = may_end_ && bytes == 0;
  if (!has_ended_) ++arrived_;
  return !has_ended_;
}

bool Receives::drain(World& world) {
  restart(world, arrived_);
  while (advance(world)) restart(world, arrived_);
  if (has_ended_) cancel(world);
  return has_ended_;
}

void Receives::withdraw() {
  for (; started_ > arrived_ && !has_ended_; --started_) {
    MPI_Request* const request = &requests_[(started_ - 1) % requests_.size()];
    int has_come = 0, is_over = 0, is_cancelled = 0;
    check(MPI_Request_get_status(*request, &has_come, MPI_STATUS_IGNORE), "MPI_Request_get_status");
    if (has_come != 0) return;
    MPI_Status status;
    check(MPI_Cancel(request), "MPI_Cancel");
    check(MPI_Test(request, &is_over, &status), "MPI_Test");
    if (is_over == 0) return;  // a message is coming
    check(MPI_Test_cancelled(&status, &is_cancelled), "MPI_Test_cancelled");
    if (is_cancelled != 0) continue;
    take_next(status);  // it was coming, and so all others before have come
    return;
  }
}

void Receives::cancel(World& world) {
  std::vector<MPI_Request> unfinished;
  for (std::uint64_t part = arrived_ + (has_ended_ ? 1 : 0); part < started_; ++part) {
    MPI_Request* const request = &requests_[part % requests_.size()];
    if (is_complete(world, request)) {
      world.taint();  // a message that nobody took; more may follow
      continue;
    }
    check(MPI_Cancel(request), "MPI_Cancel");
    if (is_complete(world, request)) continue;
    if (!has_ended_) world.taint();
    unfinished.push_back(std::exchange(*request, MPI_REQUEST_NULL));
  }
  arrived_ = started_;
  for (MPI_Request& request : requests_) free_request(&request);
  if (!unfinished.empty()) world.adopt(std::move(unfinished), std::move(memory_));
}

class Receiver final : public ReceivingEnd, private RequestHolder, private Postable {
 public:
  Receiver(std::shared_ptr<World> world, const ChannelSpec& spec, int tag, std::size_t part_bytes);
  ~Receiver() override {
    world_->posted_receives().leave(this);
    world_->end(this);
  }

  [[gnu::hot]] const std::byte* arrived(std::uint64_t seq) override {
    post();
    while ((seq + 1) * parts_.count > receives_.arrived()) {
      if (!receives_.advance(*world_)) return nullptr;
    }
    return receives_.slot(seq % slots_);
  }

  [[gnu::hot]] std::span<const std::byte> arrived_first(std::uint64_t seq) override {
    if (arrived(seq)) return {};
    const std::uint64_t here = receives_.arrived() - std::min(receives_.arrived(), seq * parts_.count);
    return {receives_.slot(seq % slots_), static_cast<std::size_t>(here) * parts_.part_bytes};
  }

  [[gnu::hot]] void release(std::uint64_t seq) override {
    assert((seq + 1) * parts_.count <= receives_.arrived() && seq * parts_.count == released_);
    (void)seq;
    post();
    released_ += parts_.count;
    if (slots_ == 1) post();  // a long message comes only to one that is under way
  }

 private:
  void post() override {
    if (receives_.restart(*world_, released_) && is_short_) world_->posted_receives().note(*this);
  }
  void withdraw() override { receives_.withdraw(); }
  void close() override;
  void leak() override { receives_.leak(); }

  static constexpr int most_started = 4;
  static constexpr std::size_t longest_short = 4096;  ///< sent whether or not a receive is started
  std::shared_ptr<World> world_;
  bool is_short_;
  bool may_leave_messages_;
  std::size_t slots_;
  MessageParts parts_;
  Receives receives_;
  std::uint64_t released_ = 0;  // parts
};

Receiver::Receiver(std::shared_ptr<World> world, const ChannelSpec& spec, int tag, std::size_t part_bytes)
    : world_(std::move(world)),
      is_short_(spec.capacity_bytes <= longest_short),
      may_leave_messages_(spec.may_leave_messages),
      slots_(static_cast<std::size_t>(std::min(spec.slots, most_started))),
      parts_(spec.capacity_bytes, part_bytes),
      receives_(*world_, spec, tag, parts_, slots_) {
  world_->enter(this);
  if (is_short_) world_->posted_receives().enter(this);
  try {
    post();
  } catch (...) {
    world_->posted_receives().leave(this);
    world_->leave(this);
    world_->taint();
    receives_.leak();  // requests that were started may use it
    throw;
  }
}

void Receiver::close() {
  world_->posted_receives().leave(this);
  if (!may_leave_messages_) return receives_.cancel(*world_);
  const auto left = std::make_shared<Receives>(std::move(receives_));
  receives_.give_up();
  world_->adopt([world = world_.get(), left] { return left->drain(*world); }, left);
}

}  // namespace

std::unique_ptr<Channel> receiving_end(std::shared_ptr<World> world, const ChannelSpec& spec, int tag,
                                       std::size_t part_bytes) {
  return std::make_unique<Receiver>(std::move(world), spec, tag, part_bytes);
}

}  // namespace kplan::transport::mpi_backend
