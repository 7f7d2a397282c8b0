// How it works: one thread waits in epoll for all connections. Whoever connects is a guest until it has said who it is.
// A rank can be in one collective call at a time, so one contribution a rank is kept; with the last one, all go out to
// all. A connection that closes is a rank that has ended; if it did not take its leave, it died.
#include "transports/control/hub.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <list>
#include <thread>

#include "transports/control/stream.hpp"
#include "transports/not_come.hpp"

namespace kplan::transport::control {
namespace {

constexpr std::size_t most_greeting_bytes = 4096;
constexpr int nobody = -1;

class Hub {
 public:
  Hub(Socket listener, int size, const std::string& key)
      : listener_(std::move(listener)),
        greeting_(greeting(size, key)),
        places_(static_cast<std::size_t>(size)),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    watch(listener_.file(), EPOLLIN, nullptr, EPOLL_CTL_ADD);
  }

  /// Until rank 0 and all others that have come have ended.
  void run() {
    while (!place(0).has_ended || ended_ < joined_) {
      epoll_event events[64];
      const int count = ::epoll_wait(epoll_.file(), events, 64, -1);
      if (count < 0 && errno != EINTR) return;
      for (int i = 0; i < count; ++i) {
        if (events[i].data.ptr == nullptr) admit();
        else serve(*static_cast<Connection*>(events[i].data.ptr));
      }
      connections_.remove_if([](const Connection& each) { return each.is_over; });
    }
  }

 private:
  struct Connection {
    explicit Connection(Socket socket) : stream(std::move(socket)) {}
    Stream stream;
    int rank = nobody;
    bool is_over = false, waits_to_send = false;
  };
  /// What is known of a rank.
  struct Place {
    Connection* connection = nullptr;
    std::optional<std::string> contribution;
    std::uint64_t contributions = 0;
    bool has_come = false, has_ended = false;
  };

  int size() const { return static_cast<int>(places_.size()); }
  Place& place(int rank) { return places_[static_cast<std::size_t>(rank)]; }
  void watch(int file, std::uint32_t events, void* who, int operation);
  void admit();
  void serve(Connection& connection);
  void greet(Connection& connection, const Frame& frame);
  void take(Connection& connection, Frame frame);
  void send(Connection& connection, Word word, int rank, std::shared_ptr<const std::string> bytes);
  void send_all(Word word, int rank, std::string bytes);
  void gather();
  void give_up(int rank, const std::string& waited);
  void end(int rank);

  Socket listener_;
  std::string greeting_;
  std::vector<Place> places_;
  Socket epoll_;
  std::list<Connection> connections_;
  int came_ = 0;  // to the collective call under way
  int joined_ = 0, ended_ = 0;
  std::string given_up_;
};

void Hub::watch(int file, std::uint32_t events, void* who, int operation) {
  epoll_event wanted{};
  wanted.events = events;
  wanted.data.ptr = who;
  (void)::epoll_ctl(epoll_.file(), operation, file, &wanted);
}

void Hub::admit() {
  Socket socket = accept_from(listener_);
  if (!socket.is_open()) return std::this_thread::sleep_for(std::chrono::milliseconds(1));  // too many open files
  connections_.emplace_back(std::move(socket));
  Connection& guest = connections_.back();
  guest.stream.limit(most_greeting_bytes);
  watch(guest.stream.file(), EPOLLIN, &guest, EPOLL_CTL_ADD);
}

void Hub::serve(Connection& connection) {
  while (!connection.is_over) {
    std::optional<Frame> frame = connection.stream.receive();
    if (!frame) break;
    if (connection.rank == nobody) greet(connection, *frame);
    else take(connection, std::move(*frame));
  }
  if (connection.is_over) return;
  if (connection.stream.is_closed()) {
    connection.is_over = true;
    watch(connection.stream.file(), 0, nullptr, EPOLL_CTL_DEL);
    if (connection.rank != nobody) end(connection.rank);
  } else if (connection.waits_to_send && connection.stream.flush()) {
    connection.waits_to_send = false;
    watch(connection.stream.file(), EPOLLIN, &connection, EPOLL_CTL_MOD);
  }
}

void Hub::greet(Connection& connection, const Frame& frame) {
  const auto refuse = [&](const std::string& why) { connection.stream.send(Word::refused, 0, why); };
  if (frame.word != Word::hello || frame.bytes != greeting_) {
    refuse("rank 0 waits for ranks of a world of " + std::to_string(size()) +
           ", and this process means another size, another world or another version of kplan; start all alike");
  } else if (frame.rank < 0 || frame.rank >= size() || place(frame.rank).has_come) {
    refuse("two processes of this world say that they are rank " + std::to_string(frame.rank) +
           "; give each its own KPLAN_RANK");
  } else {
    connection.rank = frame.rank;
    connection.stream.limit(std::size_t{1} << 40);
    ++joined_;
    place(frame.rank).has_come = true;
    place(frame.rank).connection = &connection;
    send(connection, Word::welcome, 0, std::make_shared<const std::string>(greeting_));
    for (int rank = 0; rank < size(); ++rank) {
      if (place(rank).has_ended)
        send(connection, Word::ended, rank,
             std::make_shared<const std::string>(std::to_string(place(rank).contributions)));
    }
  }
}

void Hub::take(Connection& connection, Frame frame) {
  const int rank = connection.rank;
  if (frame.word == Word::contribution && !place(rank).contribution) {
    ++place(rank).contributions;
    place(rank).contribution = std::move(frame.bytes);
    ++came_;
    if (!given_up_.empty()) send(connection, Word::given_up, 0, std::make_shared<const std::string>(given_up_));
    else if (came_ == size()) gather();
  } else if (frame.word == Word::late) {
    give_up(rank, frame.bytes);
  } else if (frame.word == Word::leaving) {
    end(rank);
    connection.is_over = true;  // its end of the connection closes once all have been told
    place(rank).connection = nullptr;
  }
}

void Hub::send(Connection& connection, Word word, int rank, std::shared_ptr<const std::string> bytes) {
  connection.stream.send(word, rank, std::move(bytes));
  if (connection.stream.flush() || connection.waits_to_send) return;
  connection.waits_to_send = true;
  watch(connection.stream.file(), EPOLLIN | EPOLLOUT, &connection, EPOLL_CTL_MOD);
}

void Hub::send_all(Word word, int rank, std::string bytes) {
  const auto shared = std::make_shared<const std::string>(std::move(bytes));
  for (Place& each : places_) {
    if (each.connection != nullptr) send(*each.connection, word, rank, shared);
  }
}

void Hub::gather() {
  std::string all;
  for (const Place& each : places_) {
    const std::uint64_t bytes = each.contribution->size();
    all.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  }
  for (Place& each : places_) {
    all += *each.contribution;
    each.contribution.reset();
  }
  came_ = 0;
  send_all(Word::gathered, 0, std::move(all));
}

void Hub::give_up(int rank, const std::string& waited) {
  std::vector<int> missing;
  for (int each = 0; each < size(); ++each) {
    if (!place(each).contribution) missing.push_back(each);
  }
  if (!place(rank).contribution) return;  // all came in the last moment
  if (given_up_.empty()) given_up_ = waited_in_vain(rank, waited, missing, size());
  send_all(Word::given_up, rank, given_up_);
}

void Hub::end(int rank) {
  Place& own = place(rank);
  own.connection = nullptr;
  if (std::exchange(own.has_ended, true)) return;
  ++ended_;
  send_all(Word::ended, rank, std::to_string(own.contributions));
}

}  // namespace

std::string greeting(int size, const std::string& key) { return "kplan control 1 " + std::to_string(size) + " " + key; }

void serve(Socket listener, int size, const std::string& key) {
  auto hub = std::make_unique<Hub>(std::move(listener), size, key);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the program's own threads
  std::thread([hub = std::move(hub)]() mutable {
    try {
      hub->run();
    } catch (const std::exception&) {  // for want of memory: the connections close, and all ranks see it
    }
    hub.reset();
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace kplan::transport::control
