#pragma once
// The way of a varying pattern whose statement goes by rows (row_statement.hpp). What does not in some run, and what is
// wrong, is left to the general way.

#include <memory>

#include "engine/runtime/row_statement.hpp"
#include "engine/runtime/told_way.hpp"

namespace kplan {

class RowsWay final : public VaryingWay {
 public:
  RowsWay(const BoundPlan& bound, std::size_t number, std::shared_ptr<RowStatement> rows);

  void send(const RunContext& context, const Outbox& to) override;
  void take_letter(LetterKind kind, const transport::ReceivedLetter& letter) override;
  void take(const RunContext& context) override;
  std::span<const std::span<std::byte>> places(int from, const std::vector<BoundMemory>& memory) override;
  void answer(const RunContext& context, std::span<const int> requesters, const Outbox& to) override;
  void take_answer(const transport::ReceivedLetter& letter) override { general_.add(letter, rows_->bound()); }
  void take_answers(const RunContext& context) override;
  void apply(const RunContext& context) override;

 private:
  void go_general_way(const RunContext& context);

  bool is_pull_;
  bool is_told_;  ///< else every rank could work the pattern out, too
  std::shared_ptr<RowStatement> rows_;
  ToldWay general_;
  std::vector<RowStatement::Came> came_;  ///< this rank's own rows among them, once they are taken
  bool is_by_rows_ = false;               ///< what has come is applied row by row
  Unfilled<std::byte> own_answer_;        ///< to rows that this rank has asked itself for
  std::vector<RowStatement::Came> answers_;
};

}  // namespace kplan
