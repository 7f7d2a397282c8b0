// How it works: closing never waits. What is still under way when its channel closes moves here together with its
// memory: requests, and channels that may be left with messages, whose receives go on until the sender has said that no
// more follow. It is given a second when the world itself ends; memory that MPI may still touch then is leaked.
// An attribute on MPI_COMM_SELF, whose delete function MPI_Finalize calls first of all, shuts worlds that are still
// open, so that no destructor makes an MPI call too late. MPI_Comm_free is collective by the letter, but waits for
// nobody in Open MPI and MPICH, which is what the standard expects of it (MPI-3.1, 6.4.3).
#include "transports/mpi/world.hpp"

#include <algorithm>
#include <climits>
#include <iterator>
#include <mutex>
#include <utility>

#include "transports/codes.hpp"
#include "transports/mpi/tags.hpp"
#include "transports/pause.hpp"

namespace kplan::transport::mpi_backend {
namespace {

struct Registry {
  std::mutex mutex;
  std::set<World*> worlds;
  bool is_hooked = false, is_shut = false;
};

Registry& registry() {
  static auto* const the_registry = new Registry;  // outlives everything that MPI_Finalize may run in
  return *the_registry;
}

extern "C" int shut_all_worlds(MPI_Comm, int, void*, void*) {
  const std::lock_guard lock(registry().mutex);
  for (World* world : registry().worlds) world->close();  // others may wait for what one of them says then
  const Clock::time_point deadline = World::patience();
  for (World* world : registry().worlds) world->shut(deadline);
  registry().worlds.clear();
  registry().is_shut = true;
  return MPI_SUCCESS;
}

void enter_registry(World* world) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (!all.is_hooked) {
    int key = MPI_KEYVAL_INVALID;
    check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, shut_all_worlds, &key, nullptr), "MPI_Comm_create_keyval");
    check(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), "MPI_Comm_set_attr");
    check(MPI_Comm_free_keyval(&key), "MPI_Comm_free_keyval");
    all.is_hooked = true;
  }
  all.worlds.insert(world);
}

int largest_tag() {
  void* value = nullptr;
  int is_set = 0;
  check(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &is_set), "MPI_Comm_get_attr");
  return is_set != 0 ? *static_cast<int*>(value) : 32767;  // the least that the standard allows
}

}  // namespace

World::World(MPI_Comm parent, Limits limits, std::shared_ptr<Session> session, std::shared_ptr<InFlightList> in_flight)
    : limits_(limits), session_(std::move(session)), in_flight_(std::move(in_flight)) {
  if (limits_.max_tag == 0) limits_.max_tag = largest_tag();
  if (limits_.max_count == 0) limits_.max_count = INT_MAX;
  check(MPI_Comm_dup(parent, &comm_), "MPI_Comm_dup");
  check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  enter_registry(this);
}

World::~World() {
  {
    const std::lock_guard lock(registry().mutex);
    registry().worlds.erase(this);
  }
  if (is_open() && is_mpi_up()) shut();
}

void World::adopt(std::function<bool()> is_over, std::shared_ptr<const void> memory) {
  orphans_.push_back({std::move(is_over), std::move(memory)});
  look_after_orphans();
}

void World::adopt(std::vector<MPI_Request> requests, std::shared_ptr<const void> memory) {
  auto are_over = [own = std::move(requests)]() mutable {
    int is_done = 0;
    check(MPI_Testall(static_cast<int>(own.size()), own.data(), &is_done, MPI_STATUSES_IGNORE), "MPI_Testall");
    if (is_done == 0) return false;
    for (MPI_Request& request : own) free_request(&request);
    return true;
  };
  adopt(std::function<bool()>(std::move(are_over)), std::move(memory));
}

const bool& World::are_shut() { return registry().is_shut; }

void World::throw_closed() {
  throw TransportError(codes::unusable, "a run, or what is left of one, after MPI was finalised; finalise later");
}

[[gnu::hot]] void World::drive() {
  require_open();
  in_flight_->move_on();
  if (std::exchange(is_driven_, false)) return;
  int is_there = 0;
  check(MPI_Iprobe(rank_, tag_of_nothing, comm_, &is_there, MPI_STATUS_IGNORE), "MPI_Iprobe");
}

/// Drops those that are over. One may leave others when it is.
void World::look_after_orphans() {
  std::vector<Orphan> all = std::exchange(orphans_, {});
  std::size_t next = 0;
  try {
    for (; next < all.size(); ++next)
      if (!all[next].is_over()) orphans_.push_back(std::move(all[next]));
  } catch (...) {
    std::move(all.begin() + static_cast<std::ptrdiff_t>(next), all.end(), std::back_inserter(orphans_));
    throw;
  }
}

void World::settle(Clock::time_point deadline) {
  for (unsigned idle = 0;; ++idle) {
    look_after_orphans();
    if (orphans_.empty() || Clock::now() >= deadline) return;
    pause_thread(idle, true);
  }
}

/// Whether something has come that nobody took.
bool World::holds_messages() const {
  int is_there = 0;
  check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &is_there, MPI_STATUS_IGNORE), "MPI_Iprobe");
  return is_there != 0;
}

void World::end(RequestHolder* holder) noexcept {
  if (!is_open()) return;
  leave(holder);
  try {
    holder->close();
  } catch (...) {
    taint();
    holder->leak();
  }
}

void World::close() noexcept {
  while (!holders_.empty()) end(*holders_.begin());
}

void World::shut(Clock::time_point deadline) noexcept {
  close();
  try {
    settle(deadline);
    if (!is_tainted_ && orphans_.empty() && !holds_messages()) check(MPI_Comm_free(&comm_), "MPI_Comm_free");
  } catch (const std::exception&) {
    // There is nobody to tell, and nothing to do but to keep off what may be in use.
  }
  for (Orphan& orphan : orphans_) leak(std::move(orphan.memory));
  comm_ = MPI_COMM_NULL;
}

}  // namespace kplan::transport::mpi_backend
