// How it works: one datatype and one persistent request for each message; MPI packs as it sees fit.
#include "tools/bench/exchange/packer.hpp"
#include "tools/bench/exchange/region_type.hpp"
#include "tools/bench/methods/exchange_methods.hpp"

namespace kplan::bench {
namespace {

class Runner {
 public:
  explicit Runner(SharedExchange exchange) : exchange_(std::move(exchange)) {
    const Exchange& e = *exchange_;
    void* send_base = type_base(e, e.sends);
    void* receive_base = type_base(e, e.receives);
    for (const Link& l : e.receives) {
      if (l.peer == e.team.rank) {
        movers_.emplace_back(l, e);
        continue;
      }
      types_.push_back(region_type(l.mine, e, receive_base));
      MPI_Recv_init(receive_base, 1, types_.back().get(), l.peer, l.tag, e.team.comm, &requests_.emplace_back());
    }
    for (const Link& l : e.sends) {
      types_.push_back(region_type(l.mine, e, send_base));
      MPI_Send_init(send_base, 1, types_.back().get(), l.peer, l.tag, e.team.comm, &requests_.emplace_back());
    }
    MPI_Barrier(e.team.comm);
  }
  ~Runner() {
    for (MPI_Request& request : requests_) MPI_Request_free(&request);
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void run() {
    // No requests are an error to MPI where they have no address.
    if (!requests_.empty()) MPI_Startall(static_cast<int>(requests_.size()), requests_.data());
    for (Mover& m : movers_) m.move();
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }

 private:
  SharedExchange exchange_;
  std::vector<OwnedType> types_;
  std::vector<MPI_Request> requests_;
  std::vector<Mover> movers_;
};

}  // namespace

Method typed_persistent(SharedExchange exchange) {
  return method_of<Runner>("datatypes, persistent", std::move(exchange));
}

}  // namespace kplan::bench
