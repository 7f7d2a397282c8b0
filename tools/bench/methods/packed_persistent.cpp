// How it works: receives are started first; each message is packed and sent at once, or sent by a datatype; what has
// come is unpacked in the order of arrival.
#include "tools/bench/aligned_memory.hpp"
#include "tools/bench/exchange/packer.hpp"
#include "tools/bench/exchange/region_type.hpp"
#include "tools/bench/methods/exchange_methods.hpp"

namespace kplan::bench {
namespace {

class Runner {
 public:
  enum class Sends : std::uint8_t { packed, typed };
  Runner(SharedExchange exchange, Sends sends) : exchange_(std::move(exchange)) {
    const Exchange& e = *exchange_;
    for (const Link& l : e.sends) {
      if (sends == Sends::packed) add_send(l);
      else add_typed_send(l);
    }
    for (const Link& l : e.receives) {
      if (l.peer == e.team.rank) movers_.emplace_back(l, e);
      else add_receive(l);
    }
    MPI_Barrier(e.team.comm);
  }
  ~Runner() {
    for (auto* requests : {&send_requests_, &receive_requests_})
      for (MPI_Request& request : *requests) MPI_Request_free(&request);
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void run() {
    // No requests are an error to MPI where they have no address.
    if (!receive_requests_.empty()) MPI_Startall(static_cast<int>(receive_requests_.size()), receive_requests_.data());
    for (std::size_t k = 0; k < send_requests_.size(); ++k) {
      if (k < sends_.size() && sends_[k].memory.data() != nullptr) sends_[k].packer.pack(sends_[k].memory.data());
      MPI_Start(&send_requests_[k]);
    }
    for (Mover& m : movers_) m.move();
    for (std::size_t left = receives_.size(); left > 0; --left) {
      int which = 0;
      MPI_Waitany(static_cast<int>(receive_requests_.size()), receive_requests_.data(), &which, MPI_STATUS_IGNORE);
      const Packed& r = receives_[static_cast<std::size_t>(which)];
      if (r.memory.data() != nullptr) r.packer.unpack(r.memory.data());
    }
    MPI_Waitall(static_cast<int>(send_requests_.size()), send_requests_.data(), MPI_STATUSES_IGNORE);
  }

 private:
  struct Packed {
    Packer packer;
    AlignedMemory memory;  ///< none: the region itself is sent or received
  };

  /// Where the region lies in one piece, if it may be used there.
  std::byte* in_place(const Link& l, bool may_be) const {
    const Run run = may_be ? contiguous_run(l.mine) : Run{};
    if (!run.exists()) return nullptr;
    const Array& array = exchange_->arrays[static_cast<std::size_t>(run.array)];
    return array.data + run.first * static_cast<std::int64_t>(size_of(array.type));
  }
  void add_send(const Link& l) {
    const Exchange& e = *exchange_;
    Packed p{Packer(l.mine, e.arrays, e.wire_type(), Combine::assign), {}};
    std::byte* data = in_place(l, !e.reads_what_it_writes);
    if (data == nullptr) data = (p.memory = AlignedMemory(p.packer.message_bytes())).data();
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Send_init(data, static_cast<int>(element_count(l.mine)), basic_type(e.wire_type()), l.peer, l.tag, e.team.comm,
                  &request);
    sends_.push_back(std::move(p));
    send_requests_.push_back(request);
  }
  void add_typed_send(const Link& l) {
    const Exchange& e = *exchange_;
    void* base = type_base(e, e.sends);
    types_.push_back(region_type(l.mine, e, base));
    MPI_Send_init(base, 1, types_.back().get(), l.peer, l.tag, e.team.comm, &send_requests_.emplace_back());
  }
  void add_receive(const Link& l) {
    const Exchange& e = *exchange_;
    Packed p{Packer(l.mine, e.arrays, e.wire_type(), e.combine), {}};
    std::byte* data = in_place(l, e.stores_as_sent() && !e.reads_what_it_writes);
    if (data == nullptr) data = (p.memory = AlignedMemory(p.packer.message_bytes())).data();
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Recv_init(data, static_cast<int>(element_count(l.mine)), basic_type(e.wire_type()), l.peer, l.tag, e.team.comm,
                  &request);
    receives_.push_back(std::move(p));
    receive_requests_.push_back(request);
  }

  SharedExchange exchange_;
  std::vector<Packed> sends_, receives_;  ///< no sends where they are typed
  std::vector<OwnedType> types_;
  std::vector<MPI_Request> send_requests_, receive_requests_;
  std::vector<Mover> movers_;
};

}  // namespace

Method packed_persistent(std::string name, SharedExchange exchange) {
  return method_of<Runner>(std::move(name), std::move(exchange), Runner::Sends::packed);
}

Method packed_from_typed(SharedExchange exchange) {
  return method_of<Runner>("datatypes sent, hand loops", std::move(exchange), Runner::Sends::typed);
}

}  // namespace kplan::bench
