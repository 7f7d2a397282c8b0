#pragma once
// A rank of a local world and its exchanges, for tests that change some of what they do.

#include <memory>

#include "kplan/transport.hpp"

namespace kplan::tests {

class WrappedExchange : public transport::SparseExchange {
 public:
  explicit WrappedExchange(std::unique_ptr<SparseExchange> base) : base_(std::move(base)) {}

  void begin(std::span<const transport::OutgoingLetter> letters) override { base_->begin(letters); }
  void begin(std::span<const transport::OutgoingLetter> letters, std::span<const int> sources) override {
    base_->begin(letters, sources);
  }
  bool is_complete() override { return base_->is_complete(); }
  std::span<const transport::ReceivedLetter> received() const override { return base_->received(); }
  std::vector<int> waits_for() const override { return base_->waits_for(); }

 private:
  std::unique_ptr<SparseExchange> base_;
};

class WrappedTransport : public transport::Transport {
 public:
  explicit WrappedTransport(std::shared_ptr<transport::Transport> base) : base_(std::move(base)) {}

  std::string_view name() const override { return base_->name(); }
  int rank() const override { return base_->rank(); }
  int size() const override { return base_->size(); }
  std::vector<std::string> allgather(std::string_view mine, transport::Clock::time_point deadline) override {
    return base_->allgather(mine, deadline);
  }
  std::vector<std::unique_ptr<transport::Channel>> open(std::span<const transport::ChannelSpec> specs,
                                                        transport::Clock::time_point deadline) override {
    return base_->open(specs, deadline);
  }
  std::unique_ptr<transport::SparseExchange> open_exchange(transport::Clock::time_point deadline,
                                                           transport::Use use) override {
    return base_->open_exchange(deadline, use);
  }
  bool tells_faster() const override { return base_->tells_faster(); }
  std::size_t piece_bytes(int peer) const override { return base_->piece_bytes(peer); }
  int best_slots(int peer, std::size_t bytes) const override { return base_->best_slots(peer, bytes); }
  bool lends_memory(int peer) const override { return base_->lends_memory(peer); }
  bool can_lend(const std::byte* memory) const override { return base_->can_lend(memory); }
  void progress() override { base_->progress(); }
  void keep_moving(transport::InFlight& moved) override { base_->keep_moving(moved); }
  void let_go(transport::InFlight& moved) override { base_->let_go(moved); }
  void pause(unsigned idle_rounds) override { base_->pause(idle_rounds); }
  const bool& has_ended() const override { return base_->has_ended(); }
  std::optional<int> dead() override { return base_->dead(); }
  bool is_dead(int rank) override { return base_->is_dead(rank); }

 private:
  std::shared_ptr<transport::Transport> base_;
};

}  // namespace kplan::tests
