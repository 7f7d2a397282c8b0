#pragma once
// TCP sockets that close themselves, and the ways to get one.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kplan/transport.hpp"

namespace kplan::transport::control {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int file) : file_(file) {}
  ~Socket();
  Socket(Socket&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }

  int file() const { return file_; }
  bool is_open() const { return file_ >= 0; }

 private:
  int file_ = -1;
};

struct Address {
  std::string host;  ///< a name or a number; empty: of all interfaces, to listen at
  std::uint16_t port = 0;
};

/// Listens; port 0 lets the system choose. Errors: TransportError.
Socket listen_at(const Address& address);
std::uint16_t port_of(const Socket& listener);
/// The next one that wants to be connected, if one does.
Socket accept_from(const Socket& listener);
/// Not open if nobody answers there before the deadline.
Socket connect_to(const Address& address, Clock::time_point deadline);

/// The hosts under which other processes may reach this one, as numbers: its own loop first.
std::vector<std::string> own_hosts();

}  // namespace kplan::transport::control
