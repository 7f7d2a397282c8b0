#pragma once
// Framed messages over a TCP connection, sent and received without ever blocking.

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "transports/control/socket.hpp"

namespace kplan::transport::control {

/// What a frame says.
enum class Word : std::uint32_t {
  hello,         ///< to the hub: rank, and the world that it means
  welcome,       ///< to a member that may take part
  refused,       ///< to one that may not: why
  contribution,  ///< to the hub: of a rank to the collective call under way
  gathered,      ///< of all ranks
  late,          ///< to the hub: this rank's time is up; says how long it waited
  given_up,      ///< no collective call can succeed any more: why
  leaving,       ///< to the hub: the rank ends as it should
  ended,         ///< that rank is gone; in how many collective calls it took part
};

struct Frame {
  Word word = Word::hello;
  std::int32_t rank = 0;
  std::string bytes;
};

class Stream {
 public:
  explicit Stream(Socket socket) : socket_(std::move(socket)) {}

  int file() const { return socket_.file(); }
  /// Sends as much as the system takes now, and keeps the rest for flush(). Many streams may share the bytes.
  void send(Word word, int rank, std::shared_ptr<const std::string> bytes);
  void send(Word word, int rank, std::string bytes) {
    send(word, rank, std::make_shared<const std::string>(std::move(bytes)));
  }
  /// Sends on; whether nothing is left to be sent.
  bool flush();
  /// The next frame that is here as a whole. None also when the other end has closed.
  std::optional<Frame> receive();
  /// Whether the other end has closed, or sent what cannot be a frame. All that came before can still be received.
  bool is_closed() const { return is_closed_; }
  /// Refuses frames of more bytes, as long as nobody knows who is at the other end.
  void limit(std::size_t most_bytes) { most_bytes_ = most_bytes; }

 private:
  struct Outgoing {
    std::string head;
    std::shared_ptr<const std::string> bytes;
    std::size_t sent = 0;
  };
  void read_on();

  Socket socket_;
  bool is_closed_ = false;
  std::size_t most_bytes_ = std::size_t{1} << 40;
  std::deque<Outgoing> outgoing_;
  std::string incoming_;
  std::size_t taken_ = 0;  // bytes at the front of incoming_ that were frames
};

}  // namespace kplan::transport::control
