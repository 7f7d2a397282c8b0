// How it works: a frame is a head of 16 bytes (word, rank, length) and its bytes. What comes is appended to one string,
// from which whole frames are cut; what goes waits in a queue for the system to take it.
#include "transports/control/stream.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace kplan::transport::control {
namespace {

struct Head {
  std::uint32_t word = 0;
  std::int32_t rank = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(Head) == 16);

bool is_for_later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

void Stream::send(Word word, int rank, std::shared_ptr<const std::string> bytes) {
  if (is_closed_) return;
  const Head head{static_cast<std::uint32_t>(word), rank, bytes->size()};
  outgoing_.push_back({std::string(reinterpret_cast<const char*>(&head), sizeof head), std::move(bytes)});
  (void)flush();
}

bool Stream::flush() {
  while (!outgoing_.empty() && !is_closed_) {
    Outgoing& next = outgoing_.front();
    const std::size_t of_head = std::min(next.sent, next.head.size());
    const std::size_t of_bytes = next.sent - of_head;
    iovec parts[] = {{next.head.data() + of_head, next.head.size() - of_head},
                     {const_cast<char*>(next.bytes->data()) + of_bytes, next.bytes->size() - of_bytes}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t sent = ::sendmsg(socket_.file(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (!is_for_later(errno)) outgoing_.clear();  // what has come can still be read; that ends in the error too
      return outgoing_.empty();
    }
    next.sent += static_cast<std::size_t>(sent);
    if (next.sent == next.head.size() + next.bytes->size()) outgoing_.pop_front();
  }
  return true;
}

void Stream::read_on() {
  char buffer[1 << 16];
  while (!is_closed_) {
    const ssize_t came = ::recv(socket_.file(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (came < 0 && is_for_later(errno)) return;
    if (came <= 0) is_closed_ = true;
    if (came > 0) incoming_.append(buffer, static_cast<std::size_t>(came));
    if (came < static_cast<ssize_t>(sizeof buffer)) return;
  }
}

std::optional<Frame> Stream::receive() {
  for (const bool has_read : {false, true}) {
    Head head;
    if (incoming_.size() - taken_ >= sizeof head) {
      std::memcpy(&head, incoming_.data() + taken_, sizeof head);
      if (head.bytes > most_bytes_ || head.word > static_cast<std::uint32_t>(Word::ended)) {
        is_closed_ = true;
        return std::nullopt;
      }
      if (incoming_.size() - taken_ - sizeof head >= head.bytes) {
        Frame frame{static_cast<Word>(head.word), head.rank, incoming_.substr(taken_ + sizeof head, head.bytes)};
        taken_ += sizeof head + head.bytes;
        return frame;
      }
    }
    if (has_read || is_closed_) break;
    incoming_.erase(0, taken_);
    taken_ = 0;
    read_on();
  }
  return std::nullopt;
}

}  // namespace kplan::transport::control
