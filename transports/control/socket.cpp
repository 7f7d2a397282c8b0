// How it works: all sockets are non-blocking and closed by exec. Keep-alive probes and a limit for data that nobody
// acknowledges turn a machine that is gone into an error after some ten seconds; a process that is gone closes its
// sockets at once, killed or not.
#include "transports/control/socket.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "transports/codes.hpp"

namespace kplan::transport::control {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList resolve(const Address& address, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const char* const host = address.host.empty() ? nullptr : address.host.c_str();
  if (getaddrinfo(host, std::to_string(address.port).c_str(), &hints, &found) != 0) found = nullptr;
  return {found, freeaddrinfo};
}

Socket make_socket(int family) { return Socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

void set(const Socket& socket, int level, int option, int value) {
  (void)setsockopt(socket.file(), level, option, &value, sizeof value);  // a refused one costs speed, no more
}

void tune(const Socket& socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 4);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 10000);
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 1000000));
}

bool is_connected(const Socket& socket, Clock::time_point deadline) {
  pollfd wanted{socket.file(), POLLOUT, 0};
  while (::poll(&wanted, 1, milliseconds_until(deadline)) < 0) {
    if (errno != EINTR) return false;
  }
  int error = ETIMEDOUT;
  socklen_t bytes = sizeof error;
  if (wanted.revents == 0 || getsockopt(socket.file(), SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) return false;
  return error == 0;
}

std::string number_of(const sockaddr* address, socklen_t bytes) {
  char text[NI_MAXHOST] = "";
  return getnameinfo(address, bytes, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

}  // namespace

Socket::~Socket() {
  if (file_ >= 0) ::close(file_);
}

Socket listen_at(const Address& address) {
  int error = EADDRNOTAVAIL;
  const AddressList found = resolve(address, AI_PASSIVE);
  for (const int family : {AF_INET6, AF_INET}) {  // one that takes both kinds of address first
    for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
      if (each->ai_family != family) continue;
      Socket socket = make_socket(family);
      if (!socket.is_open()) continue;
      set(socket, SOL_SOCKET, SO_REUSEADDR, 1);
      if (family == AF_INET6) set(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
      if (::bind(socket.file(), each->ai_addr, each->ai_addrlen) == 0 && ::listen(socket.file(), 4096) == 0)
        return socket;
      error = errno;
    }
  }
  throw TransportError(codes::control_failed, "rank 0 cannot listen at " +
                                                  (address.host.empty() ? "any address" : address.host) + " port " +
                                                  std::to_string(address.port) + ": " + std::strerror(error) +
                                                  "; name a free port of this machine");
}

std::uint16_t port_of(const Socket& listener) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  if (getsockname(listener.file(), reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

Socket accept_from(const Socket& listener) {
  Socket socket(::accept4(listener.file(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.is_open()) tune(socket);
  return socket;
}

Socket connect_to(const Address& address, Clock::time_point deadline) {
  const AddressList found = resolve(address, 0);
  for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
    Socket socket = make_socket(each->ai_family);
    if (!socket.is_open()) continue;
    const int started = ::connect(socket.file(), each->ai_addr, each->ai_addrlen);
    if (started != 0 && errno != EINPROGRESS) continue;
    if (!is_connected(socket, deadline)) continue;
    tune(socket);
    return socket;
  }
  return {};
}

std::vector<std::string> own_hosts() {
  std::vector<std::string> hosts{"127.0.0.1"};
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return hosts;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
      if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != family) continue;
      if ((each->ifa_flags & IFF_UP) == 0 || (each->ifa_flags & IFF_LOOPBACK) != 0) continue;
      std::string host =
          number_of(each->ifa_addr, family == AF_INET ? socklen_t{sizeof(sockaddr_in)} : sizeof(sockaddr_in6));
      if (!host.empty() && host.find('%') == std::string::npos) hosts.push_back(std::move(host));  // none of one link
    }
  }
  freeifaddrs(list);
  return hosts;
}

}  // namespace kplan::transport::control
