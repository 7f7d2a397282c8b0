// How it works: every operation has a communicator of its own, so that operations may be started in different orders,
// and one block of memory: what leaves, then what comes, each rank's part from a multiple of 64 bytes on. Where all get
// the same, it lies where MPI wants it already.
#include "transports/mpi/collective.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace kplan::transport::mpi_backend {
namespace {

/// Whether MPI has persistent collective operations.
constexpr bool are_persistent = MPI_VERSION >= 4;

/// Parts of the block by rank, as MPI takes them.
struct Parts {
  explicit Parts(const std::vector<std::size_t>& lengths);
  std::vector<int> counts, offsets;
  std::size_t bytes = 0;
};

std::size_t aligned(std::size_t bytes) { return (bytes + slot_alignment - 1) / slot_alignment * slot_alignment; }

Parts::Parts(const std::vector<std::size_t>& lengths) {
  for (const std::size_t length : lengths) {
    counts.push_back(static_cast<int>(length));
    offsets.push_back(static_cast<int>(bytes));
    bytes = aligned(bytes + length);
  }
}

class MpiCollective final : public Collective, private RequestHolder {
 public:
  MpiCollective(std::shared_ptr<World> world, const CollectiveSpec& spec);
  ~MpiCollective() override { world_->end(this); }

  std::byte* outgoing(int peer) override { return is_one_part_ ? part_in(own_part_) : part_out(peer); }
  const std::byte* incoming(int peer) override { return part_in(peer); }
  void start() override;
  bool is_complete() override;

 private:
  // MPI takes buffers that begin at one address for one buffer, so what comes never lies where what leaves does.
  std::byte* first_in() const { return memory_.slot(0) + std::max(out_.bytes, slot_alignment); }
  std::byte* part_out(int rank) const { return memory_.slot(0) + out_.offsets[static_cast<std::size_t>(rank)]; }
  std::byte* part_in(int rank) const { return first_in() + in_.offsets[static_cast<std::size_t>(rank)]; }
  struct Arguments;
  /// Begins the operation or, where MPI has persistent ones, makes its request.
  void make(const Arguments& arguments, MPI_Request* request) const;
  void close() override;
  void leak() override { memory_.leak(); }

  std::shared_ptr<World> world_;
  CollectiveKind kind_;
  int root_, own_part_;
  bool is_one_part_;  ///< broadcast, allgather: what leaves lies among what comes
  Parts out_, in_;
  SlotMemory memory_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool is_active_ = false;
};

/// What MPI is given.
struct MpiCollective::Arguments {
  explicit Arguments(const MpiCollective& c)
      : first_out(c.memory_.slot(0)),
        first_in(c.first_in()),
        out(c.out_.counts.data()),
        out_at(c.out_.offsets.data()),
        in(c.in_.counts.data()),
        in_at(c.in_.offsets.data()),
        root(c.root_) {
    const bool is_root = c.own_part_ == root;
    if (c.kind_ == CollectiveKind::broadcast || (c.kind_ == CollectiveKind::scatter && !is_root)) {
      received = c.part_in(root);
      received_bytes = in[root];
    }
    if (c.kind_ == CollectiveKind::gather && !is_root) {
      sent = c.part_out(root);
      sent_bytes = out[root];
    }
  }

  std::byte *first_out, *first_in;
  const int *out, *out_at, *in, *in_at;
  int root;
  void* sent = MPI_IN_PLACE;  ///< of one part that goes to the root
  int sent_bytes = 0;
  void* received = MPI_IN_PLACE;  ///< of one part that comes from the root
  int received_bytes = 0;
};

/// By rank, what comes; where what leaves lies among it, as long for each of the others, that too.
std::vector<std::size_t> lengths_in(const CollectiveSpec& spec, int rank, bool is_one_part) {
  std::vector<std::size_t> out = spec.incoming_bytes;
  if (is_one_part) out[static_cast<std::size_t>(rank)] = spec.outgoing_bytes[rank == 0 ? 1 : 0];
  return out;
}

bool is_of_one_part(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::allgather;
}

MpiCollective::MpiCollective(std::shared_ptr<World> world, const CollectiveSpec& spec)
    : world_(std::move(world)),
      kind_(spec.kind),
      root_(spec.root),
      own_part_(world_->rank()),
      is_one_part_(is_of_one_part(kind_)),
      out_(is_one_part_ ? std::vector<std::size_t>() : spec.outgoing_bytes),
      in_(lengths_in(spec, own_part_, is_one_part_)),
      memory_(std::max(out_.bytes, slot_alignment) + in_.bytes, 1) {
  world_->enter(this);
  if (!are_persistent) return;
  try {
    make(Arguments(*this), &request_);
  } catch (...) {
    world_->leave(this);
    throw;
  }
}

#if MPI_VERSION >= 4
void MpiCollective::make(const Arguments& a, MPI_Request* request) const {
  MPI_Comm const comm = world_->comm();
  switch (kind_) {
    case CollectiveKind::broadcast:
      return check(MPI_Bcast_init(a.received, a.received_bytes, MPI_BYTE, a.root, comm, MPI_INFO_NULL, request),
                   "MPI_Bcast_init");
    case CollectiveKind::scatter:
      return check(MPI_Scatterv_init(a.first_out, a.out, a.out_at, MPI_BYTE, a.received, a.received_bytes, MPI_BYTE,
                                     a.root, comm, MPI_INFO_NULL, request),
                   "MPI_Scatterv_init");
    case CollectiveKind::gather:
      return check(MPI_Gatherv_init(a.sent, a.sent_bytes, MPI_BYTE, a.first_in, a.in, a.in_at, MPI_BYTE, a.root, comm,
                                    MPI_INFO_NULL, request),
                   "MPI_Gatherv_init");
    case CollectiveKind::allgather:
      return check(MPI_Allgatherv_init(MPI_IN_PLACE, 0, MPI_BYTE, a.first_in, a.in, a.in_at, MPI_BYTE, comm,
                                       MPI_INFO_NULL, request),
                   "MPI_Allgatherv_init");
    case CollectiveKind::alltoall:
      return check(MPI_Alltoallv_init(a.first_out, a.out, a.out_at, MPI_BYTE, a.first_in, a.in, a.in_at, MPI_BYTE, comm,
                                      MPI_INFO_NULL, request),
                   "MPI_Alltoallv_init");
    case CollectiveKind::none: return;
  }
}
#else
void MpiCollective::make(const Arguments& a, MPI_Request* request) const {
  MPI_Comm const comm = world_->comm();
  switch (kind_) {
    case CollectiveKind::broadcast:
      return check(MPI_Ibcast(a.received, a.received_bytes, MPI_BYTE, a.root, comm, request), "MPI_Ibcast");
    case CollectiveKind::scatter:
      return check(MPI_Iscatterv(a.first_out, a.out, a.out_at, MPI_BYTE, a.received, a.received_bytes, MPI_BYTE, a.root,
                                 comm, request),
                   "MPI_Iscatterv");
    case CollectiveKind::gather:
      return check(
          MPI_Igatherv(a.sent, a.sent_bytes, MPI_BYTE, a.first_in, a.in, a.in_at, MPI_BYTE, a.root, comm, request),
          "MPI_Igatherv");
    case CollectiveKind::allgather:
      return check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, a.first_in, a.in, a.in_at, MPI_BYTE, comm, request),
                   "MPI_Iallgatherv");
    case CollectiveKind::alltoall:
      return check(
          MPI_Ialltoallv(a.first_out, a.out, a.out_at, MPI_BYTE, a.first_in, a.in, a.in_at, MPI_BYTE, comm, request),
          "MPI_Ialltoallv");
    case CollectiveKind::none: return;
  }
}
#endif

void MpiCollective::start() {
  assert(!is_active_);
  world_->require_open();
  if (are_persistent) check(MPI_Start(&request_), "MPI_Start");
  else make(Arguments(*this), &request_);
  is_active_ = true;
}

bool MpiCollective::is_complete() {
  is_active_ = is_active_ && !mpi_backend::is_complete(*world_, &request_);
  return !is_active_;
}

void MpiCollective::close() {
  if (!is_complete()) world_->adopt({std::exchange(request_, MPI_REQUEST_NULL)}, std::move(memory_));
  free_request(&request_);
}

}  // namespace

std::unique_ptr<Collective> open_collective(const World& world, const CollectiveSpec& spec) {
  return std::make_unique<MpiCollective>(
      std::make_shared<World>(world.comm(), world.limits(), world.session(), world.in_flight()), spec);
}

}  // namespace kplan::transport::mpi_backend
