#pragma once
// A rank's one endpoint with its two completion queues, and the operations that are posted to it.

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kplan/transport.hpp"
#include "transports/ofi/provider.hpp"

namespace kplan::transport::ofi_backend {

class Endpoint;

inline constexpr int anybody = -1;

/// One thing that the provider is asked to do, again and again perhaps. May not move or go while it is under way.
class Operation {
 public:
  /// `peer`: the rank to which something goes, or anybody: something comes.
  explicit Operation(int peer) : peer_(peer) {}
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  /// Whether the provider, or the queue of those that it has no room for, still has it.
  bool is_under_way() const { return is_under_way_; }
  int peer() const { return peer_; }

 protected:
  /// Gives libfabric's answer: 0 when its end will be told, or an error; 1 when it has ended already.
  virtual ssize_t post() = 0;
  /// It has ended well. May start it anew.
  virtual void ended() = 0;
  /// It has ended and come to nothing, because of the peer as a rule.
  virtual void failed() {}
  void set_peer(int rank) { peer_ = rank; }
  /// What to give to libfabric as its context.
  void* context() { return &token_; }

 private:
  friend Endpoint;
  struct Token {
    fi_context2 room{};  // the provider's, while it is under way
    Operation* self = nullptr;
  };
  Token token_{{}, this};
  int peer_;
  bool is_under_way_ = false;
  Operation* next_ = nullptr;  // in a queue
};

/// Hears of what others have written into this rank's memory.
class Listener {
 public:
  virtual void notified(std::uint32_t what) = 0;

 protected:
  ~Listener() = default;
};

class Endpoint {
 public:
  /// Errors: TransportError.
  explicit Endpoint(Provider provider);

  const Provider& provider() const { return provider_; }
  const fi_info& info() const { return *provider_.info; }
  fid_ep* ep() const { return ep_.get(); }
  void set_listener(Listener& listener) { listener_ = &listener; }

  /// This endpoint's name, to be given to the other ranks.
  std::string name() const;
  /// Gives the endpoint another name, before open(): the provider makes files by it.
  void rename(const std::string& name);
  void open();
  /// The names of all ranks, in their order.
  void connect(const std::vector<std::string>& names);
  fi_addr_t address(int rank) const { return addresses_[static_cast<std::size_t>(rank)]; }

  /// Registers memory. Errors: TransportError.
  fid_mr* register_memory(const void* memory, std::size_t bytes, std::uint64_t access);
  void unregister(fid_mr* region);

  /// Posts it now, or as soon as the provider has room; after those that wait to go to the same rank.
  void start(Operation& operation);
  /// Whether any waits to go to that rank.
  bool is_any_waiting(int rank) const { return sends_[static_cast<std::size_t>(rank)].first != nullptr; }
  /// Takes what has ended or come, and posts what waits for room. Whether there was anything. Errors: TransportError.
  bool poll();

  /// What went wrong between this rank and others; the first failure with each.
  struct Failure {
    std::string text;
    Clock::time_point when;
  };
  const std::map<int, Failure>& failures() const { return failures_; }

  /// Ends everything, under way or not.
  void close();

 private:
  /// Operations that wait for room, in the order in which they are tried.
  struct Queue {
    Operation* first = nullptr;
    Operation* last = nullptr;
    bool has_turn = false;  ///< its rank is among the turns
    void push(Operation& operation);
    Operation& pop();
    void push_front(Operation& operation);
  };

  static Operation& operation_of(void* context);
  bool submit(Operation& operation);
  bool post_waiting(Queue& queue);
  bool post_receives();
  void finish(Operation& operation);
  void fail(Operation& operation, const std::string& text);
  bool poll(fid_cq* queue);
  void take_error(fid_cq* queue);
  bool retry();

  Provider provider_;
  Open<fid_fabric> fabric_;
  Open<fid_domain> domain_;
  Open<fid_av> av_;
  Open<fid_cq> sent_, received_;
  Open<fid_ep> ep_;
  std::vector<fi_addr_t> addresses_;
  std::set<fid_mr*> regions_;
  std::uint64_t last_key_ = 0;
  Listener* listener_ = nullptr;
  Queue receives_;
  std::vector<Queue> sends_;  ///< by rank
  std::deque<int> turns_;     ///< the ranks to which some wait to go
  std::map<int, Failure> failures_;
};

}  // namespace kplan::transport::ofi_backend
