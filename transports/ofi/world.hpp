#pragma once
// What the channels and exchanges of a transport share: the control plane, the endpoint, the post, and who takes what
// comes.

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transports/control/member.hpp"
#include "transports/ofi/links.hpp"
#include "transports/ofi/mailboxes.hpp"

namespace kplan::transport::ofi_backend {

/// Bounds of the provider's; tests lower them, alike on all ranks.
struct Limits {
  std::size_t piece_bytes = std::size_t{1} << 30;  ///< that one operation carries at the most
  std::uint64_t first_exchange = 0;                ///< the number of an exchange object's first exchange
};

class Trial;

class World final : private Recipient, private Listener {
 public:
  /// Collective over the members of the control plane. Errors: TransportError, Unsupported, PlanError.
  World(std::unique_ptr<control::Member> member, Limits limits, Clock::time_point deadline);
  /// Waits until what this rank has sent has been taken by all that are alive, for ten seconds at the most.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return member_->rank(); }
  int size() const { return member_->size(); }
  /// Ranks of this machine, this one among them.
  int neighbours() const { return neighbours_; }
  const Limits& limits() const { return limits_; }
  /// Whether channels write into the receiver's memory and notify it; else they send tagged messages.
  bool is_one_sided() const { return is_one_sided_; }
  /// Up to so many bytes a write needs no memory of its own once it is posted.
  std::size_t most_injected() const { return most_injected_; }
  Endpoint& endpoint() { return *endpoint_; }
  Post& post() { return *post_; }
  Links& links() { return links_; }
  Mailboxes& mailboxes() { return mailboxes_; }

  std::vector<std::string> allgather(std::string_view mine, Clock::time_point deadline);
  /// Exchanges a note with each of these ranks, which must do the same; that sets up connections.
  void warm(const std::vector<int>& peers, Clock::time_point deadline);
  void progress();
  std::optional<int> dead() { return member_->dead(); }
  bool is_dead(int rank) { return member_->is_dead(rank); }

  /// Keeps bytes on their way until they are sent, and the memory that they lie in.
  void adopt(std::unique_ptr<Parcel> parcel, std::shared_ptr<const void> memory) {
    orphans_.push_back({std::move(memory), std::move(parcel)});
  }

 private:
  void open_endpoint();
  void meet(const std::vector<std::string>& machines, Clock::time_point deadline);
  void try_writing(const std::vector<std::string>& targets, Clock::time_point deadline);
  void hide_files(Clock::time_point deadline);
  Place take(const Note& note) override;
  void filled(const Note& note, void* whose) override;
  void notified(std::uint32_t what) override;
  void throw_if_failed();
  bool is_out_of_reach(int rank) { return is_dead(rank) || endpoint_->failures().contains(rank); }
  void leave();

  std::unique_ptr<control::Member> member_;
  Limits limits_;
  std::unique_ptr<Endpoint> endpoint_;
  Links links_;
  Mailboxes mailboxes_;
  bool is_one_sided_ = false;
  std::size_t most_injected_ = 0;
  std::array<std::byte, 64> target_{};  // for the other ranks' attempts to write
  Registration target_registration_;
  std::unique_ptr<Trial> trial_;
  struct Orphan {
    std::shared_ptr<const void> memory;
    std::unique_ptr<Parcel> parcel;
  };
  std::vector<Orphan> orphans_;
  std::unique_ptr<Post> post_;  // goes first, and closes the endpoint
  int neighbours_ = 1;
  std::vector<bool> was_greeted_by_;  // by rank
  std::vector<bool> is_done_with_;    // by rank: it has taken all notes of this one, or wants no more
};

}  // namespace kplan::transport::ofi_backend
