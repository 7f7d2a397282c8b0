// How it works: a letter is a header, for each reduction the number of its rows and their words column by column (the
// variables that the place uses, then the number of elements where it can be other than one), as 32-bit words where
// they fit, and then, of a push, the values as the general way has them; answers to a pull are these alone. Places are
// all worked out, and those assigned found to be distinct, before the first is written. What is wrong is not told here:
// the general way, taken once more from the start, finds the same and says where.
#include "engine/runtime/row_statement.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "engine/analysis/expressions.hpp"
#include "engine/analysis/pattern_finder.hpp"

namespace kplan {
namespace {

constexpr std::uint64_t rows_form = 2;
constexpr std::size_t alignment_bytes = 16;
constexpr std::size_t any = SIZE_MAX;  // not known when compiled

struct RowHeader {
  std::uint64_t form = rows_form, uniform_hash = 0;
};
static_assert(sizeof(RowHeader) == 16);

std::size_t aligned(std::size_t bytes) { return (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes; }

[[noreturn]] void fail_damaged() {
  throw TransportError("KP-T012", "a message of a varying statement has come damaged; do all ranks run one build?");
}

/// As it travels: an element that follows others, or an integer; null where it is neither.
ExprPtr plain_value(const PlanModel& plan, const Statement& s, const Reduction& r) {
  const auto has_element = [](const Expr& e) { return e.kind == ExprKind::element; };
  const bool is_integral = !r.value->record && (is_integer(r.value->type) || r.value->type == Scalar::boolean) &&
                           r.value->type == r.value_type.scalar;
  if (r.value->kind != ExprKind::element && is_integral && !contains(*r.value, has_element)) return r.value;
  // Only the end that evaluates bindings can put them into the value.
  const ExprPtr value = r.value->kind == ExprKind::element || s.is_pull ? r.value : with_bindings(r.value, s);
  if (value->kind != ExprKind::element || !names_runs(plan, *value)) return nullptr;
  const bool is_one = std::ranges::none_of(value->subscripts, &Subscript::is_slice) && !value->subscripts.empty();
  return is_one || value->element_bytes == r.value_type.size_bytes ? value : nullptr;
}

bool is_one_element(const PlanModel& plan, const Expr& e) {
  if (e.kind != ExprKind::element) return true;
  if (e.subscripts.empty()) return plan.buffers[static_cast<std::size_t>(e.id)].shape.empty();
  return std::ranges::none_of(e.subscripts, &Subscript::is_slice);
}

bool is_plain(const PlanModel& plan, const Statement& s) {
  if (s.is_fresh || !is_told(infer_knowledge(plan, s)) || !hangs_on_contents(s)) return false;
  for (const Variable& v : s.variables)
    if (!is_integer(v.type) && v.type != Scalar::boolean) return false;
  for (std::size_t k = 0; k < s.reductions.size(); ++k) {
    const Reduction& r = s.reductions[k];
    if ((r.is_native && !r.is_assign) || !plain_value(plan, s, r) || !names_runs(plan, *r.place)) return false;
    const bool is_one = is_one_element(plan, *r.place);
    if (!is_one && r.place->element_bytes != r.place_type.size_bytes) return false;
    for (std::size_t other = 0; other < k; ++other)
      if (s.reductions[other].place->id == r.place->id) return false;
  }
  return true;
}

/// The call that applies a reduction to single elements, for ReadyCall::run_listed: entries of its list are numbers of
/// elements in the place's buffer. For operators of plans.
ReadyCall make_listed_update(const BoundPlan& bound, std::size_t statement, int reduction, jit::Wait wait) {
  const Reduction& r = bound.model->statements[statement].reductions[static_cast<std::size_t>(reduction)];
  StatementSchedule schedule;
  schedule.statement = static_cast<int>(statement);
  schedule.rank = bound.state.rank;
  schedule.size = bound.state.size;
  const auto element_bytes = static_cast<std::int64_t>(r.place->element_bytes),
             value_bytes = static_cast<std::int64_t>(r.value_type.size_bytes);
  const auto field = static_cast<std::int64_t>(r.place->field_offset_bytes);
  const Piece piece{2, {}, {{{field}, {}, element_bytes}, {{0}, {}, value_bytes}}};
  SpecTable table;
  std::vector<KernelCall> calls;
  Lowering(bound, schedule, table, Literals::innermost)
      .unpack({reduction, piece, r.is_assign, /*is_injective=*/false}, calls);
  const std::vector<jit::Kernel> kernels = jit::Compiler::instance().compile(table.specs(), wait);
  return {std::move(calls.at(0)), kernels.at(0), &table.specs()[0]};
}

}  // namespace

std::unique_ptr<RowStatement> RowStatement::of(const BoundPlan& bound, std::size_t number, jit::Wait wait) {
  if (!is_plain(*bound.model, bound.model->statements[number])) return nullptr;
  return std::unique_ptr<RowStatement>(new RowStatement(bound, number, wait));
}

RowStatement::RowStatement(const BoundPlan& bound, std::size_t number, jit::Wait wait)
    : bound_(bound),
      s_(bound_.model->statements[number]),
      enumeration_(bound_, s_),
      block_(s_.variables.size()),
      share_numbers_(static_cast<std::size_t>(bound_.state.size), -1) {
  for (std::size_t k = 0; k < s_.reductions.size(); ++k) {
    const Reduction& r = s_.reductions[k];
    Part& part = parts_.emplace_back();
    part.reduction = &r;
    part.told = told_variables(s_, r);
    part.near.expression = plain_value(*bound_.model, s_, r);
    part.far.expression = r.place;
    if (s_.is_pull) std::swap(part.near, part.far);
    part.has_counts = !is_one_element(*bound_.model, *part.near.expression);
    part.value_bytes = r.value_type.size_bytes;
    part.sent.resize(part.told.size() + (part.has_counts ? 1 : 0));
    const auto has_same_rows = [&](const Part& other) {
      return !other.has_counts && !part.has_counts && other.told == part.told &&
             to_text(*other.reduction->sender) == to_text(*r.sender) &&
             to_text(*other.reduction->receiver) == to_text(*r.receiver);
    };
    part.table = static_cast<std::size_t>(std::ranges::find_if(parts_, has_same_rows) - parts_.begin());
    if (part.table > k) part.table = k;  // of one with counts
    part.are_single = !part.has_counts && is_one_element(*bound_.model, *part.far.expression);
    if (!r.is_assign || r.value_type != r.place_type)
      part.update = make_listed_update(bound_, number, static_cast<int>(k), wait);
    using Form = ColumnProgram::Form;
    for (End* end : {&part.near, &part.far}) {
      const bool are_runs = end == &part.far ? !part.are_single : part.has_counts;
      const Form of_element = are_runs ? Form::runs : Form::elements;
      end->program = enumeration_.columns().program(*end->expression, end->is_element() ? of_element : Form::integers);
      const bool goes_to_list = part.update && (end == &part.near) == s_.is_pull;
      if (!end->is_element() || goes_to_list) continue;
      end->unit = static_cast<std::int64_t>(end->expression->element_bytes);
      end->offset = static_cast<std::int64_t>(end->expression->field_offset_bytes);
    }
  }
  const auto wish_of = [](const Part& part, const End& end) {
    return RowWish{&*end.program, end.unit, end.offset, part.has_counts, part.told};
  };
  std::vector<RowWish> near;
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    Part& part = parts_[k];
    near.push_back(wish_of(part, part.near));
    if (part.table != k) near.back().told.clear();
    if (auto call = lower_told_rows(bound_, s_, wish_of(part, part.far)))
      part.told_rows.emplace(std::move(*call), bound_.state, wait);
  }
  if (auto call = lower_decided_rows(bound_, s_, near)) decided_rows_.emplace(std::move(*call), bound_.state, wait);
}

std::vector<std::pair<std::string, const RowCall*>> RowStatement::calls() const {
  std::vector<std::pair<std::string, const RowCall*>> out;
  if (decided_rows_) out.emplace_back(s_.is_pull ? "rows to ask for" : "rows to send", &decided_rows_->call());
  for (const Part& part : parts_)
    if (part.told_rows)
      out.emplace_back(s_.is_pull ? "values of rows that were asked for" : "places of rows that have come",
                       &part.told_rows->call());
  return out;
}

bool RowStatement::is_rows(std::span<const std::byte> letter) {
  RowHeader header;
  if (letter.size() < sizeof header) return false;
  std::memcpy(&header, letter.data(), sizeof header);
  return header.form == rows_form;
}

std::uint64_t RowStatement::uniform_hash_in(std::span<const std::byte> letter) {
  RowHeader header;
  std::memcpy(&header, letter.data(), sizeof header);
  return header.uniform_hash;
}

/// The rows of all parts; false where it must be done, or tried, by the enumeration.
bool RowStatement::find_by_code() {
  if (!decided_rows_) return false;
  for (;;) {
    columns_.clear();
    room_.clear();
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      Part& part = parts_[k];
      std::size_t room = std::min(part.peers.size(), part.firsts.size());
      columns_.insert(columns_.end(), {part.peers.data(), part.firsts.data()});
      for (std::size_t c = 0; part.table == k && c < part.sent.size(); ++c) {
        room = std::min(room, part.sent[c].size());
        columns_.push_back(part.sent[c].data());
      }
      room_.push_back(static_cast<std::int64_t>(room));
    }
    found_.resize(parts_.size());
    const jit::RowsOutcome outcome = decided_rows_->run(bound_.state, 0, {}, {columns_, room_, found_});
    if (outcome == jit::rows_left) return false;
    if (outcome == jit::rows_done) break;
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      const std::size_t more = std::max(Block::most_rows, 2 * static_cast<std::size_t>(room_[k]));
      for (Column* column : {&parts_[k].peers, &parts_[k].firsts}) room_in(*column, more);
      for (Column& column : parts_[k].sent) room_in(column, more);
    }
  }
  for (std::size_t k = 0; k < parts_.size(); ++k) parts_[k].rows = static_cast<std::size_t>(found_[k]);
  return true;
}

void RowStatement::add(Part& part, const Block& block, const std::int64_t* peers) {
  const std::size_t count = block.count, before = part.rows;
  const auto more = [&](Column& column) { return room_in(column, before + count) + before; };
  std::copy_n(peers, count, more(part.peers));
  std::int64_t* const firsts = more(part.firsts);
  enumeration_.columns().run(*part.near.program, block, firsts, part.has_counts ? more(part.sent.back()) : nullptr);
  part.near.scale(firsts, count);
  for (std::size_t w = 0; w < part.told.size(); ++w)
    std::copy_n(block.words[static_cast<std::size_t>(part.told[w])].begin(), count, more(part.sent[w]));
  part.rows += count;
}

void RowStatement::add_share(std::int64_t peer) {
  share_numbers_[static_cast<std::size_t>(peer)] = static_cast<std::int32_t>(sharers_.size());
  sharers_.push_back(peer);
  for (Part& part : parts_) {
    if (part.cursors.size() < sharers_.size()) part.cursors.emplace_back();
    part.cursors[sharers_.size() - 1] = {};
  }
}

void RowStatement::count_shares() {
  for (const std::int64_t peer : sharers_) share_numbers_[static_cast<std::size_t>(peer)] = -1;
  sharers_.clear();
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    Part& part = parts_[k];
    if (part.table == k) count_rows(part);
    else std::copy_n(parts_[part.table].cursors.begin(), sharers_.size(), part.cursors.begin());
  }
}

void RowStatement::count_rows(Part& part) {
  const std::int64_t* const peers = part.peers.data();
  const std::int32_t* const shares = share_numbers_.data();
  for (std::size_t row = 0; row < part.rows; ++row) {
    const std::int64_t peer = peers[row];
    if (shares[peer] < 0) [[unlikely]]
      add_share(peer);
    Cursor& cursor = part.cursors[static_cast<std::size_t>(shares[peer])];
    ++cursor.rows;
    if (part.has_counts) cursor.elements += part.count_of(row);
  }
  std::int64_t wide = 0;
  for (const Column& words : part.sent)
    for (const std::int64_t word : std::span(words).first(part.rows)) wide |= word ^ static_cast<std::int32_t>(word);
  for (Cursor& cursor : part.cursors) {
    cursor.is_wide = wide != 0;
    if (!part.has_counts) cursor.elements = cursor.rows;
  }
}

/// Where the parts of a share's letter will lie; returns its size.
std::size_t RowStatement::lay_out(std::size_t share) {
  std::size_t at = sizeof(RowHeader) + 8 * parts_.size();
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    Part& part = parts_[k];
    Cursor& cursor = part.cursors[share];
    if (part.table != k) continue;
    cursor.words_offset = at;
    at += cursor.rows * part.sent.size() * (cursor.is_wide ? 8 : 4);
  }
  at = aligned(at);
  if (s_.is_pull) return at;
  for (Part& part : parts_) {
    Cursor& cursor = part.cursors[share];
    if (cursor.elements == 0) continue;
    cursor.values_offset = at = aligned(at);
    at += cursor.elements * part.value_bytes;
  }
  return at;
}

/// Writes what stands before the rows, and puts the cursors to their beginning.
void RowStatement::begin(std::size_t share, std::uint64_t uniform_hash, std::byte* letter) {
  const RowHeader header{rows_form, uniform_hash};
  std::memcpy(letter, &header, sizeof header);
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    Cursor& cursor = parts_[k].cursors[share];
    const std::uint64_t head = 2 * cursor.rows + (cursor.is_wide ? 1 : 0);
    std::memcpy(letter + sizeof header + 8 * k, &head, sizeof head);
    cursor.words = letter + cursor.words_offset;
    cursor.values = letter + cursor.values_offset;
  }
}

void RowStatement::send(const RankState& state, const std::vector<BoundMemory>& memory, std::uint64_t uniform_hash,
                        transport::SparseExchange& exchange, std::vector<transport::OutgoingLetter>& letters) {
  bound_.state.parameters = state.parameters;
  bound_.state.contents = state.contents;
  for (Part& part : parts_) {
    part.rows = 0;
    if (part.update) part.update->set_varying(state.parameters);
  }
  if (!find_by_code())
    enumeration_.each_decided(
        [this](std::size_t k, const Block& block, const std::int64_t* peers) { add(parts_[k], block, peers); });
  count_shares();
  if (memories_.size() < sharers_.size()) memories_.resize(sharers_.size());
  own_ = {};
  for (std::size_t k = 0; k < sharers_.size(); ++k) {
    const std::size_t bytes = lay_out(k);
    const bool is_own = sharers_[k] == bound_.state.rank;
    const auto to = static_cast<int>(bound_.world_rank_of(sharers_[k]));
    std::byte* letter = is_own ? nullptr : exchange.room(to, bytes);
    if (!letter) {
      if (memories_[k].size() < bytes) memories_[k].resize(bytes);
      letter = memories_[k].data();
    }
    begin(k, uniform_hash, letter);
    if (is_own) own_ = {letter, bytes};
    else letters.push_back({to, {letter, bytes}});
  }
  fill(memory);
}

void RowStatement::fill(const std::vector<BoundMemory>& memory) {
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    Part& part = parts_[k];
    const std::byte* const base =
        part.near.is_element() ? memory[static_cast<std::size_t>(part.near.buffer())].base : nullptr;
    const bool is_wide = !part.cursors.empty() && part.cursors[0].is_wide;
    const std::size_t columns = part.table == k ? part.sent.size() : 0;
    const std::size_t bytes = s_.is_pull || part.has_counts ? any : part.value_bytes;
    if (columns == 0 && bytes == 8) fill_part<std::int32_t, 0, 8>(part, base);
    else if (columns == 0 && bytes == 4) fill_part<std::int32_t, 0, 4>(part, base);
    else if (columns == 0 && !s_.is_pull) fill_part<std::int32_t, 0, any>(part, base);
    else if (columns == 0) continue;
    else if (is_wide) fill_part<std::int64_t, any, any>(part, base);
    else if (columns == 1 && bytes == 8) fill_part<std::int32_t, 1, 8>(part, base);
    else if (columns == 1 && bytes == 4) fill_part<std::int32_t, 1, 4>(part, base);
    else if (bytes == 8) fill_part<std::int32_t, any, 8>(part, base);
    else if (bytes == 4) fill_part<std::int32_t, any, 4>(part, base);
    else fill_part<std::int32_t, any, any>(part, base);
  }
}

/// Words of so many columns; of a push, elements of so many bytes, one a row.
template <class Word, std::size_t columns, std::size_t bytes>
void RowStatement::fill_part(Part& part, const std::byte* base) {
  // Of their own, since what is written could be any of these members.
  const std::size_t rows = part.rows, column_count = columns == any ? part.sent.size() : columns;
  const std::int64_t *const peers = part.peers.data(), *const firsts = part.firsts.data();
  const std::int64_t* const only = columns == 1 ? part.sent[0].data() : nullptr;
  const std::int32_t* const shares = share_numbers_.data();
  Cursor* const cursors = part.cursors.data();
  for (std::size_t row = 0; row < rows; ++row) {
    Cursor& to = cursors[shares[peers[row]]];
    const std::size_t n = to.at++;
    for (std::size_t c = 0; c < column_count; ++c) {
      const auto word = static_cast<Word>(columns == 1 ? only[row] : part.sent[c][row]);
      std::memcpy(to.words + sizeof(Word) * (c * to.rows + n), &word, sizeof word);
    }
    if constexpr (bytes != any) {
      // An integer's low bytes are its value in every type of its size.
      auto value = static_cast<std::uint64_t>(firsts[row]);
      if (base) std::memcpy(&value, base + firsts[row], bytes);
      std::memcpy(to.values + bytes * n, &value, bytes);
    } else if (!s_.is_pull) {
      to.values = copy_values(base, firsts[row], part.count_of(row) * part.value_bytes, to.values);
    }
  }
}

/// Returns where the next ones go. `base` null: `first` is the value, an integer.
inline std::byte* RowStatement::copy_values(const std::byte* base, std::int64_t first, std::size_t bytes,
                                            std::byte* to) {
  // An integer's low bytes are its value in every type of its size.
  const std::byte* from = base ? base + first : reinterpret_cast<const std::byte*>(&first);
  if (bytes == 8) std::memcpy(to, from, 8);
  else if (bytes == 4) std::memcpy(to, from, 4);
  else if (bytes == 16) std::memcpy(to, from, 16);
  else if (bytes > 0) std::memcpy(to, from, bytes);
  return to + bytes;
}

/// Where the words of each reduction lie; returns where the values begin.
const std::byte* RowStatement::read_tables(std::span<const std::byte> letter, std::vector<Table>& tables) const {
  tables.resize(parts_.size());
  std::size_t at = sizeof(RowHeader) + 8 * parts_.size();
  if (letter.size() < at) fail_damaged();
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    std::uint64_t head = 0;
    std::memcpy(&head, letter.data() + sizeof(RowHeader) + 8 * k, sizeof head);
    Table& table = tables[k];
    table.is_wide = head % 2 != 0;
    table.rows = head / 2;
    if (parts_[k].table != k) {
      table = tables[parts_[k].table];
      if (!s_.is_pull && table.rows > letter.size() / parts_[k].value_bytes) fail_damaged();
      continue;
    }
    table.words = letter.data() + at;
    const std::size_t row_bytes = parts_[k].sent.size() * (table.is_wide ? 8 : 4);
    if (row_bytes > 0 && table.rows > (letter.size() - at) / row_bytes) fail_damaged();
    if (!s_.is_pull && !parts_[k].has_counts && table.rows > letter.size() / parts_[k].value_bytes) fail_damaged();
    if (row_bytes == 0 && std::cmp_greater(table.rows, most_message_elements)) fail_damaged();
    at += table.rows * row_bytes;
  }
  if (aligned(at) > aligned(letter.size())) fail_damaged();
  return letter.data() + aligned(at);
}

void RowStatement::add_segment(Part& part, Segment segment, std::span<const std::byte> letter, std::size_t& at) {
  if (segment.elements > 0) {
    at = aligned(at);
    const std::size_t bytes = segment.elements * part.value_bytes;
    if (at > letter.size() || bytes > letter.size() - at) fail_damaged();
    segment.values = letter.data() + at;
    at += bytes;
  }
  part.segments.push_back(segment);
}

bool RowStatement::take(std::vector<Came>& letters) {
  if (bound_.members) std::ranges::sort(letters, {}, &Came::from);  // groups have an order of their own
  if (!own_.empty()) {
    const auto at = std::ranges::lower_bound(letters, bound_.state.rank, {}, &Came::from);
    letters.insert(at, {bound_.state.rank, own_});
  }
  for (Part& part : parts_) {
    part.segments.clear();
    part.come_rows = 0;
  }
  for (const Came& came : letters) {
    const std::byte* const values = read_tables(came.letter, tables_);
    auto at = static_cast<std::size_t>(values - came.letter.data());
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      Part& part = parts_[k];
      Segment segment{tables_[k].rows, tables_[k].rows, part.come_rows, nullptr};
      if (!locate_rows(part, tables_[k])) return false;
      if (part.has_counts) {
        segment.elements = 0;
        for (std::size_t row = segment.first_row; row < part.come_rows; ++row)
          segment.elements += static_cast<std::size_t>(part.come_count(row));
      }
      if (s_.is_pull) part.segments.push_back(segment);
      else add_segment(part, segment, came.letter, at);
    }
  }
  return s_.is_pull || can_be_applied(/*are_assigned_distinct=*/false);
}

bool RowStatement::can_be_applied(bool are_assigned_distinct) {
  return std::ranges::all_of(parts_, [&](const Part& p) {
    return can_be_listed(p) &&
           (!p.reduction->is_assign || are_assigned_distinct ||
            are_distinct(p, p.come_rows, p.come_firsts.data(), p.are_single ? nullptr : p.come_counts.data()));
  });
}

std::size_t RowStatement::answer_bytes(std::size_t n) const {
  std::size_t at = 0;
  for (const Part& part : parts_)
    if (const std::size_t elements = part.segments[n].elements; elements > 0)
      at = aligned(at) + elements * part.value_bytes;
  return at;
}

void RowStatement::answer(std::size_t n, const std::vector<BoundMemory>& memory, std::byte* to) const {
  std::byte* at = to;
  for (const Part& part : parts_) {
    const Segment& segment = part.segments[n];
    if (segment.elements == 0) continue;
    at = to + aligned(static_cast<std::size_t>(at - to));
    const std::byte* const base =
        part.far.is_element() ? memory[static_cast<std::size_t>(part.far.buffer())].base : nullptr;
    for (std::size_t row = segment.first_row; row < segment.first_row + segment.rows; ++row)
      at = copy_values(base, part.come_firsts[row], static_cast<std::size_t>(part.come_count(row)) * part.value_bytes,
                       at);
  }
}

bool RowStatement::take_answers(std::vector<Came>& answers) {
  std::ranges::sort(answers, {}, &Came::from);
  for (Part& part : parts_) {
    part.segments.clear();
    part.come_rows = 0;
  }
  for (const Came& came : answers) {
    const std::int32_t number = share_numbers_[static_cast<std::size_t>(came.from)];
    if (number < 0) fail_damaged();
    std::size_t at = 0;
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      Part& part = parts_[k];
      const Cursor& asked = part.cursors[static_cast<std::size_t>(number)];
      add_segment(part, {asked.rows, asked.elements, part.come_rows, nullptr}, came.letter, at);
      part.come_rows += asked.rows;
    }
  }
  if (answers.size() != sharers_.size()) fail_damaged();
  // The rows that were asked for, sender by sender. In the order of environments they more often ascend.
  bool are_all_distinct = true;
  for (Part& part : parts_) {
    are_all_distinct = are_all_distinct && (!part.reduction->is_assign ||
                                            are_distinct(part, part.rows, part.firsts.data(),
                                                         part.has_counts ? part.sent.back().data() : nullptr));
    std::int64_t* const firsts = room_in(part.come_firsts, part.come_rows);
    std::int64_t* const counts = part.are_single ? nullptr : room_in(part.come_counts, part.come_rows);
    for (std::size_t n = 0; n < answers.size(); ++n)
      part.cursors[share_of(answers[n].from)].at = part.segments[n].first_row;
    for (std::size_t row = 0; row < part.rows; ++row) {
      const std::size_t to = part.cursors[share_of(part.peers[row])].at++;
      firsts[to] = part.firsts[row];
      if (counts) counts[to] = static_cast<std::int64_t>(part.count_of(row));
    }
  }
  return are_all_distinct && can_be_applied(/*are_assigned_distinct=*/true);
}

/// Adds where the elements of the rows are here; false where one is outside its buffer or has not as many elements as
/// at the other end.
bool RowStatement::locate_rows(Part& part, const Table& table) {
  if (locate_by_code(part, table)) return true;
  for (std::size_t first = 0; first < table.rows; first += block_.count) {
    block_.count = std::min(Block::most_rows, table.rows - first);
    for (std::size_t w = 0; w < part.told.size(); ++w) {
      std::int64_t* const words = room_in(block_.words[static_cast<std::size_t>(part.told[w])], block_.count);
      for (std::size_t row = 0; row < block_.count; ++row) words[row] = table.at(w, first + row);
    }
    const std::size_t before = part.come_rows;
    const std::size_t after = before + block_.count;
    std::int64_t* const firsts = room_in(part.come_firsts, after) + before;
    std::int64_t* const counts = part.are_single ? nullptr : room_in(part.come_counts, after) + before;
    if (counts && !part.far.is_element()) std::fill_n(counts, block_.count, 1);
    try {
      enumeration_.columns().run(*part.far.program, block_, firsts, part.far.is_element() ? counts : nullptr);
    } catch (const BlockFault&) {
      return false;
    }
    for (std::size_t row = 0; counts && row < block_.count; ++row)
      if (counts[row] != (part.has_counts ? table.at(part.told.size(), first + row) : 1)) return false;
    part.far.scale(firsts, block_.count);
    part.come_rows += block_.count;
  }
  return true;
}

/// False where it must be done, or tried, by column programs.
bool RowStatement::locate_by_code(Part& part, const Table& table) {
  if (!part.told_rows || table.is_wide) return false;
  word_columns_.clear();
  for (std::size_t c = 0; c < part.sent.size(); ++c) word_columns_.push_back(table.words + 4 * c * table.rows);
  const std::size_t before = part.come_rows, after = before + table.rows;
  std::int64_t* const columns[] = {room_in(part.come_firsts, after) + before,
                                   part.are_single ? nullptr : room_in(part.come_counts, after) + before};
  const auto rows = static_cast<std::int64_t>(table.rows);
  std::int64_t found = 0;
  if (part.told_rows->run(bound_.state, rows, word_columns_, {columns, {&rows, 1}, {&found, 1}}) != jit::rows_done)
    return false;
  part.come_rows = after;
  return true;
}

/// Whether entries of lists can say where the elements are that are not just copied.
bool RowStatement::can_be_listed(const Part& part) const {
  const Layout& layout = bound_.state.layouts[static_cast<std::size_t>(part.reduction->place->id)];
  return !part.update || layout.extent <= std::numeric_limits<jit::ListEntry>::max();
}

bool RowStatement::are_distinct_elements(std::size_t rows, const std::int64_t* firsts, std::int64_t bytes) {
  bool is_ascending = true;
  std::int64_t lowest = INT64_MAX, highest = INT64_MIN;
  for (std::size_t row = 0; row < rows; ++row) {
    is_ascending &= firsts[row] > highest;
    lowest = std::min(lowest, firsts[row]);
    highest = std::max(highest, firsts[row]);
  }
  if (is_ascending) return true;
  // Any two lie a whole number of elements apart.
  const auto unit = static_cast<std::uint64_t>(bytes);
  const int shift = std::has_single_bit(unit) ? std::countr_zero(unit) : -1;
  const auto number = [&](std::int64_t first) {
    const auto distance = static_cast<std::uint64_t>(first - lowest);
    return shift >= 0 ? distance >> shift : distance / unit;
  };
  marks_.assign(number(highest) / 64 + 1, 0);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::uint64_t k = number(firsts[row]), bit = std::uint64_t{1} << (k % 64);
    if ((marks_[k / 64] & bit) != 0) return false;
    marks_[k / 64] |= bit;
  }
  return true;
}

bool RowStatement::are_distinct(const Part& part, std::size_t rows, const std::int64_t* firsts,
                                const std::int64_t* counts) {
  const std::int64_t bytes = (s_.is_pull ? part.near : part.far).unit;
  if (!counts) return are_distinct_elements(rows, firsts, bytes);
  const auto end_of = [&](std::size_t row) { return firsts[row] + counts[row] * bytes; };
  bool is_ascending = true;
  std::int64_t lowest = INT64_MAX, end = INT64_MIN;
  for (std::size_t row = 0; row < rows; ++row) {
    if (end_of(row) == firsts[row]) continue;
    is_ascending = is_ascending && firsts[row] >= end;
    lowest = std::min(lowest, firsts[row]);
    end = std::max(end, end_of(row));
  }
  if (is_ascending) return true;
  marks_.assign(static_cast<std::size_t>((end - lowest) / bytes + 63) / 64, 0);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::int64_t first = (firsts[row] - lowest) / bytes, last = (end_of(row) - lowest) / bytes;
    for (std::int64_t k = first; k < last; ++k) {
      std::uint64_t& mark = marks_[static_cast<std::size_t>(k) / 64];
      const std::uint64_t bit = std::uint64_t{1} << (k % 64);
      if ((mark & bit) != 0) return false;
      mark |= bit;
    }
  }
  return true;
}

std::vector<Notice> RowStatement::notices(std::span<const Came> letters) const {
  std::vector<Notice> out;
  for (const Came& came : letters) {
    if (came.from == bound_.state.rank) continue;
    Notice& notice = out.emplace_back();
    notice.peer = came.from;
    read_tables(came.letter, tables_);
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      const Part& part = parts_[k];
      const Table& table = tables_[k];
      if (table.rows == 0) continue;
      Piece piece;
      piece.list_length = static_cast<std::int64_t>(table.rows);
      for (std::size_t column = 0; column <= part.told.size(); ++column) {
        Track& track = piece.tracks.emplace_back();
        for (std::size_t row = 0; row < table.rows; ++row)
          track.bases.push_back(column < part.sent.size() ? table.at(column, row) : 1);
      }
      notice.parts.push_back({static_cast<int>(k), {std::move(piece)}});
    }
  }
  return out;
}

std::span<const std::byte> RowStatement::payload(std::span<const std::byte> letter) const {
  const std::byte* const values = read_tables(letter, tables_);
  return values >= letter.data() + letter.size() ? std::span<const std::byte>()
                                                 : letter.subspan(static_cast<std::size_t>(values - letter.data()));
}

void RowStatement::apply(const std::vector<BoundMemory>& memory, const std::function<void(const ReadyCall&)>& note) {
  for (Part& part : parts_) {
    std::byte* const base = memory[static_cast<std::size_t>(part.reduction->place->id)].base;
    if (!part.update) {
      apply_copies(part, base);
      continue;
    }
    std::size_t row = 0;
    for (const Segment& segment : part.segments) {
      const std::size_t end = row + segment.rows;
      if (part.are_single) {
        listed_.resize(segment.rows);
        for (jit::ListEntry& entry : listed_) entry = static_cast<jit::ListEntry>(part.come_firsts[row++]);
      } else {
        listed_.clear();
        for (; row < end; ++row)
          for (std::int64_t k = 0; k < part.come_counts[row]; ++k)
            listed_.push_back(static_cast<jit::ListEntry>(part.come_firsts[row] + k));
      }
      // Kernels that unpack only read the message.
      if (!listed_.empty() && part.update->run_listed(memory, const_cast<std::byte*>(segment.values), listed_) != 0)
        note(*part.update);
    }
  }
}

/// Elements of so many bytes, one a row.
template <std::size_t bytes>
void RowStatement::write_single(const std::int64_t* firsts, const Segment& segment, std::byte* base) {
  for (std::size_t row = 0; row < segment.rows; ++row)
    std::memcpy(base + firsts[row], segment.values + bytes * row, bytes);
}

void RowStatement::apply_copies(const Part& part, std::byte* base) const {
  std::size_t row = 0;
  for (const Segment& segment : part.segments) {
    if (part.are_single && (part.value_bytes == 8 || part.value_bytes == 4)) {
      const std::int64_t* const firsts = part.come_firsts.data() + row;
      if (part.value_bytes == 8) write_single<8>(firsts, segment, base);
      else write_single<4>(firsts, segment, base);
      row += segment.rows;
      continue;
    }
    const std::byte* from = segment.values;
    for (const std::size_t end = row + segment.rows; row < end; ++row) {
      std::byte* const to = base + part.come_firsts[row];
      const std::size_t bytes = static_cast<std::size_t>(part.come_count(row)) * part.value_bytes;
      if (bytes == 8) std::memcpy(to, from, 8);
      else if (bytes == 4) std::memcpy(to, from, 4);
      else if (bytes == 16) std::memcpy(to, from, 16);
      else if (bytes > 0) std::memcpy(to, from, bytes);
      from += bytes;
    }
  }
}

}  // namespace kplan
