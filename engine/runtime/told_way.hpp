#pragma once
// The general way of a varying pattern that one end knows: it drafts its schedule in every run and tells the other ends
// of it by notices, which make theirs whole.

#include <optional>

#include "engine/runtime/found_pattern.hpp"
#include "engine/runtime/varying_way.hpp"

namespace kplan {

class ToldWay final : public VaryingWay {
 public:
  ToldWay(const BoundPlan& bound, std::size_t number);

  void send(const RunContext& context, const Outbox& to) override;
  bool can_take() const override { return found_.bound.has_value(); }
  void take_letter(LetterKind kind, const transport::ReceivedLetter& letter) override;
  void take(const RunContext& context) override;
  void answer(const RunContext& context, std::span<const int> requesters, const Outbox& to) override;
  void take_answer(const transport::ReceivedLetter& letter) override { add(letter, *found_.bound); }
  void take_answers(const RunContext&) override { arrived_.order(); }
  void apply(const RunContext& context) override { found_.apply(context, arrived_); }

  // For a way that leaves some runs to this one, from what it has been told on.

  /// Forgets the run before.
  void clear();
  /// What one of this way's letters holds. `bound`: as the statement's group sees it.
  void add(const transport::ReceivedLetter& letter, const BoundPlan& bound);
  void add(ArrivedPattern arrived) { arrived_.add(std::move(arrived)); }
  ArrivedPatterns& arrived() { return arrived_; }
  /// From the start: finds what is wrong, if something is.
  void take_notices(const RunContext& context, std::vector<Notice> told);

 private:
  void begin_draft(const RunContext& context);
  void finish(const RunContext& context, std::vector<Notice> told);
  void pack(const RunContext& context, SentLetters& letters);

  std::size_t number_;
  Knowledge knowledge_;
  bool is_pull_;
  std::optional<StatementDraft> draft_;
  FoundPattern found_;
  ArrivedPatterns arrived_;
};

}  // namespace kplan
