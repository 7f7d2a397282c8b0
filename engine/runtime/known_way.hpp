#pragma once
// The way of a varying pattern that both ends work out: each finds what it sends and what it is to be sent, and
// compares that with what comes. Once all ranks have agreed that a pattern is right (known_patterns.hpp), only those
// wait for each other that have messages.

#include <memory>

#include "engine/runtime/known_patterns.hpp"
#include "engine/runtime/varying_way.hpp"

namespace kplan {

class KnownWay final : public VaryingWay {
 public:
  KnownWay(const BoundPlan& bound, std::size_t number);

  /// Before send(): looks whether the pattern of this run's parameters is known.
  void recall(const RunContext& context);
  /// Whether these parameters are met for the first time, and lie where something can be; the same on all ranks where
  /// they are uniform.
  bool is_new() const { return standing_ == KnownPatterns::Standing::is_new && are_planes_inside_; }

  /// What bodies may still go to when this is no more.
  std::shared_ptr<const void> memory() const { return staged_; }

  void send(const RunContext& context, const Outbox& to) override;
  bool can_take() const override { return now_->bound.has_value(); }
  void take_letter(LetterKind kind, const transport::ReceivedLetter& letter) override;
  void take(const RunContext& context) override;
  std::span<const std::span<std::byte>> places(int from, const std::vector<BoundMemory>& memory) override;
  void apply(const RunContext& context) override { now_->apply(context, arrived_); }

  /// Whether patterns can be settled; not worth it among few ranks.
  bool can_settle() const { return can_settle_; }
  /// Of this run's pattern, after recall(), the same on all ranks; of a new one where they cannot, and where all ranks
  /// are to hear that there is no such plane.
  KnownPatterns::Standing standing() const {
    return can_settle_ && are_planes_inside_ ? standing_ : KnownPatterns::Standing::is_new;
  }
  /// World ranks that this one receives from, and sends to, in this run, ascending; none where the pattern could not be
  /// found. For a settled pattern.
  std::span<const int> sources() { return peers_of(now_->schedule.receives); }
  std::span<const int> receivers() { return peers_of(now_->schedule.sends); }
  /// Whether this run's pattern is there for the next ones, so that nothing can go wrong in finding it.
  bool is_kept() const { return now_ != &found_ || !found_.has_part(); }
  /// All ranks have found this run's pattern right, and keep it.
  void settle() { patterns_.settle(); }

 private:
  Reuse reuse() const { return now_ == &found_ ? Reuse::kernels : Reuse::program; }
  void find(const RunContext& context);
  void add_body(const RunContext& context, const Outbox& to, OutgoingMessage& m);
  void require_planes(const RunContext& context) const;
  bool are_planes_inside(const RunContext& context) const;
  void compare_ends() const;
  std::span<const int> peers_of(const std::vector<Message>& messages);

  const Statement& statement_;
  std::size_t number_;
  Knowledge knowledge_;
  int rank_;                         ///< in the world
  std::vector<const Expr*> planes_;  ///< of the statement
  bool are_planes_inside_ = true;    ///< their buffers, in this run
  KnownPatterns patterns_;
  bool can_settle_;
  FoundPattern found_;  ///< where it is not kept
  FoundPattern* now_ = &found_;
  bool is_recalled_ = false;  ///< from an earlier run
  KnownPatterns::Standing standing_ = KnownPatterns::Standing::is_new;
  ArrivedPatterns arrived_;
  std::vector<int> peers_;
  std::size_t least_body_bytes_ = 0;  ///< messages of so many bytes and more go as bodies; 0: none
  /// Bodies that are unpacked, by number of the message.
  std::shared_ptr<std::vector<Unfilled<std::byte>>> staged_ = std::make_shared<std::vector<Unfilled<std::byte>>>();
  std::vector<std::vector<std::span<std::byte>>> places_;  ///< of those that come, by number of the message
  std::vector<std::span<const std::byte>> blocks_;         ///< of one that is sent
};

}  // namespace kplan
