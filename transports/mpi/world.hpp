#pragma once
// What the channels and exchanges of a transport share: a communicator of our own, its limits, the requests that
// outlived their channels, and the exchanges that are in flight.

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "kplan/transport.hpp"
#include "transports/mpi/call.hpp"
#include "transports/mpi/posted_receives.hpp"
#include "transports/nbx.hpp"
#include "transports/slot_memory.hpp"

namespace kplan::transport::mpi_backend {

/// Bounds that MPI sets; tests lower them.
struct Limits {
  int max_tag = 0;                   ///< the largest tag; 0 asks MPI
  int max_count = 0;                 ///< of one type in a message; 0 is INT_MAX
  std::uint64_t first_exchange = 0;  ///< the number of an exchange object's first exchange
};

/// Keeps MPI initialised while any world that needs it lives; see mpi_world().
class Session;

/// Something that holds requests on a world's communicator.
class RequestHolder {
 public:
  /// Ends or hands over all its requests. Called at most once, by its owner or when MPI is finalised.
  virtual void close() = 0;
  /// Gives up the memory that its requests may still use, when MPI has failed to close it.
  virtual void leak() = 0;

 protected:
  ~RequestHolder() = default;
};

class World {
 public:
  /// Duplicates `parent`; collective over it. Errors: TransportError.
  World(MPI_Comm parent, Limits limits, std::shared_ptr<Session> session,
        std::shared_ptr<InFlightList> in_flight = std::make_shared<InFlightList>());
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  MPI_Comm comm() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  Limits limits() const { return limits_; }
  const std::shared_ptr<Session>& session() const { return session_; }

  /// Whether MPI_Finalize has shut all worlds. The reference is to what becomes true then.
  static const bool& are_shut();
  /// Whether MPI calls can still be made on it: false from the start of MPI_Finalize on.
  bool is_open() const { return comm_ != MPI_COMM_NULL; }
  /// Throws TransportError KP-T008 where they cannot.
  void require_open() const {
    if (!is_open()) [[unlikely]]
      throw_closed();
  }

  void enter(RequestHolder* holder) { holders_.insert(holder); }
  void leave(RequestHolder* holder) { holders_.erase(holder); }
  /// For a holder's destructor: closes it unless that was done on the way to MPI_Finalize. Where MPI fails, and nobody
  /// is there to be told, it leaks instead.
  void end(RequestHolder* holder) noexcept;

  /// Worlds that one transport uses one after the other share theirs.
  const std::shared_ptr<InFlightList>& in_flight() const { return in_flight_; }

  /// Receives that are started ahead.
  PostedReceives& posted_receives() { return posted_receives_; }

  /// Takes over what could not end when its channel closed, with the memory that it works on. is_over() makes MPI calls
  /// to move it on: now, whenever something is taken over, and when the world ends, until it is true.
  void adopt(std::function<bool()> is_over, std::shared_ptr<const void> memory);
  /// The same of requests, which are freed then.
  void adopt(std::vector<MPI_Request> requests, std::shared_ptr<const void> memory);
  void adopt(std::vector<MPI_Request> requests, SlotMemory memory) {
    adopt(std::move(requests), std::make_shared<SlotMemory>(std::move(memory)));
  }

  /// Says that messages may be left, or come later, in the communicator, which is then never freed: its number could be
  /// given to another, and that would receive them.
  void taint() { is_tainted_ = true; }

  /// Notes that a test has just found a request under way, which has driven MPI.
  void note_driven() { is_driven_ = true; }
  /// Moves on what is in flight, and drives MPI unless tests have done so since the last call.
  void drive();

  /// Closes what is open. Makes MPI calls.
  void close() noexcept;
  /// The same, and frees the communicator; what has not ended at the deadline is leaked, and the communicator with it.
  void shut(Clock::time_point deadline = patience()) noexcept;
  /// Until when worlds that end now wait.
  static Clock::time_point patience() { return Clock::now() + std::chrono::seconds(1); }

 private:
  [[noreturn]] static void throw_closed();
  struct Orphan {
    std::function<bool()> is_over;
    std::shared_ptr<const void> memory;
  };
  bool holds_messages() const;
  void look_after_orphans();
  void settle(Clock::time_point deadline);

  Limits limits_;
  PostedReceives posted_receives_;
  std::shared_ptr<Session> session_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 0;
  bool is_tainted_ = false;
  bool is_driven_ = false;
  std::set<RequestHolder*> holders_;
  std::shared_ptr<InFlightList> in_flight_;
  std::vector<Orphan> orphans_;
};

/// Never frees the memory: MPI may still use it.
inline void leak(std::shared_ptr<const void> memory) { (void)new auto(std::move(memory)); }

/// Starts a persistent request.
inline void start(const World& world, MPI_Request* request) {
  world.require_open();
  check(MPI_Start(request), "MPI_Start");
}

/// Whether the request has ended. Drives MPI if not.
inline bool is_complete(World& world, MPI_Request* request, MPI_Status* status = MPI_STATUS_IGNORE) {
  world.require_open();
  int is_done = 0;
  check(MPI_Test(request, &is_done, status), "MPI_Test");
  if (is_done == 0) world.note_driven();
  return is_done != 0;
}

/// Frees a persistent request, if there is one.
inline void free_request(MPI_Request* request) {
  if (*request != MPI_REQUEST_NULL) check(MPI_Request_free(request), "MPI_Request_free");
}

}  // namespace kplan::transport::mpi_backend
