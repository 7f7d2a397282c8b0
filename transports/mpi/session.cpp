// How it works: every world of mpi_world() shares one session, which finalises MPI when it goes if it initialised it.
// The communicators go first, since a world frees its own before it lets go of the session.
#include <exception>
#include <mutex>

#include "kplan/transport.hpp"
#include "transports/codes.hpp"
#include "transports/mpi/transport.hpp"
#include "transports/node/transport.hpp"
#include "transports/pause.hpp"

namespace kplan::transport {
namespace mpi_backend {
namespace {

/// Whether all ranks come to end MPI, which waits for them. That takes as long as it takes, but for a rank with an
/// error on its way to whoever reports it: others may then never come, and are waited for ten seconds.
bool do_all_come() {
  const Clock::time_point deadline =
      std::uncaught_exceptions() > 0 ? Clock::now() + std::chrono::seconds(10) : Clock::time_point::max();
  MPI_Request request = MPI_REQUEST_NULL;
  int is_done = 0;
  if (MPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS) return false;
  for (unsigned idle = 0; is_done == 0 && Clock::now() < deadline; ++idle) {
    if (MPI_Test(&request, &is_done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    pause_thread(idle, true);
  }
  return is_done != 0;
}

}  // namespace

class Session {
 public:
  Session() {
    if (is_mpi_up()) return;
    int is_finalized = 0;
    check(MPI_Finalized(&is_finalized), "MPI_Finalized");
    if (is_finalized != 0)
      throw TransportError(codes::unusable,
                           "MPI was finalised and cannot start again; keep one transport of mpi_world() as "
                           "long as any is needed");
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
    is_owner_ = true;
  }
  ~Session() {
    if (is_owner_ && is_mpi_up() && do_all_come()) MPI_Finalize();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 private:
  bool is_owner_ = false;
};

}  // namespace mpi_backend

bool has_mpi() { return true; }

std::shared_ptr<Transport> mpi_world() {
  static std::mutex mutex;
  static std::weak_ptr<mpi_backend::Session> current;
  std::shared_ptr<mpi_backend::Session> session;
  {
    const std::lock_guard lock(mutex);
    session = current.lock();
    if (!session) session = std::make_shared<mpi_backend::Session>();
    current = session;
  }
  return node_path::with_node_path(mpi_backend::make_transport(MPI_COMM_WORLD, {}, std::move(session)));
}

}  // namespace kplan::transport
