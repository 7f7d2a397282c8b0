// How it works: near rows are found by machine code or, where there is none or something is not plain, by the
// enumeration; row_letters.hpp takes them into letters. Places are all worked out, and those assigned found to be
// distinct, before the first is written. What is wrong is not told here: the general way, taken once more from the
// start, finds the same and says where.
#include "engine/runtime/row_statement.hpp"

#include <algorithm>
#include <limits>

#include "engine/analysis/pattern_finder.hpp"
#include "engine/runtime/row_choice.hpp"

namespace kplan {
namespace {

/// Columns have room for so many in the beginning: statements of few rows have them close together.
constexpr std::size_t fewest_rows = 16;

/// So many slices a body of the least length may have.
constexpr std::size_t slices_of_least = 32;

/// The call that applies a reduction to single elements, for ReadyCall::unpack_listed: entries of its list are numbers
/// of elements in the place's buffer. For operators of plans.
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
  Statement s = with_own_rank(bound.model->statements[number]);
  if (!goes_by_rows(*bound.model, s)) return nullptr;
  return std::unique_ptr<RowStatement>(new RowStatement(bound, number, std::move(s), wait));
}

RowStatement::RowStatement(const BoundPlan& bound, std::size_t number, Statement s, jit::Wait wait)
    : bound_(bound),
      s_(std::move(s)),
      loop_(loop_of_rows(*bound_.model, s_)),
      enumeration_(bound_, s_),
      block_(s_.variables.size()) {
  for (std::size_t k = 0; k < s_.reductions.size(); ++k) {
    parts_.push_back(make_part(k));
    Part& part = parts_.back();
    const bool is_near_one = is_one_element(*bound_.model, *part.near.expression);
    const bool is_far_one = is_near_one && is_one_element(*bound_.model, *part.far.expression);
    const Reduction& r = *part.reduction;
    if (!r.is_assign || r.value_type != r.place_type)
      part.update = make_listed_update(bound_, number, static_cast<int>(k), wait);
    prepare_end(part, part.near, !is_near_one);
    prepare_end(part, part.far, !is_far_one);
    part.form.step_bytes = part.near.steps.step;
    part.form.firsts = first_alike(k, &Part::near);
    part.far_firsts = first_alike(k, &Part::far);
    part.come = ArrivedRows(is_far_one && !loop_);
  }
  const auto is_written = [&](int buffer) {
    return std::ranges::any_of(parts_, [&](const Part& p) { return p.reduction->place->id == buffer; });
  };
  const bool are_copied = std::ranges::none_of(parts_, [](const Part& p) { return p.update.has_value(); });
  std::vector<RowForm> forms;
  for (Part& part : parts_) {
    part.form.may_be_apart = !s_.is_pull && are_copied && part.form.has_counts && !part.form.is_listed &&
                             !is_written(part.near.expression->id) && are_contiguous(part, part.near) &&
                             are_contiguous(part, part.far);
    forms.push_back(part.form);
  }
  letters_ = {std::move(forms), !s_.is_pull, bound_.state.size};
  make_code(wait);
}

RowStatement::Part RowStatement::make_part(std::size_t k) const {
  const Reduction& r = s_.reductions[k];
  Part part;
  part.reduction = &r;
  part.told = told_variables(s_, r);
  part.near.expression = plain_value(*bound_.model, s_, r);
  part.far.expression = r.place;
  if (s_.is_pull) std::swap(part.near, part.far);
  const bool has_counts = loop_ || !is_one_element(*bound_.model, *part.near.expression);
  part.form = {.table = k,
               .firsts = k,
               .columns = part.told.size() + (has_counts ? 1 : 0),
               .has_counts = has_counts,
               .is_listed = loop_ && loop_->is_listed,
               .value_bytes = r.value_type.size_bytes};
  if (loop_) part.turn = static_cast<std::size_t>(std::ranges::find(part.told, loop_->variable) - part.told.begin());
  const auto has_same_rows = [&](const Part& other) {
    return (loop_ || (!other.form.has_counts && !has_counts)) && other.told == part.told &&
           to_text(*other.reduction->sender) == to_text(*r.sender) &&
           to_text(*other.reduction->receiver) == to_text(*r.receiver);
  };
  part.form.table = static_cast<std::size_t>(std::ranges::find_if(parts_, has_same_rows) - parts_.begin());
  return part;
}

void RowStatement::prepare_end(Part& part, End& end, bool are_runs) {
  using Form = ColumnProgram::Form;
  const Form of_element = are_runs ? Form::runs : Form::elements;
  end.program = enumeration_.columns().program(*end.expression, end.is_element() ? of_element : Form::integers);
  if (!end.is_element()) return;
  const bool goes_to_list = part.update && (&end == &part.near) == s_.is_pull;
  if (!goes_to_list) {
    end.unit = static_cast<std::int64_t>(end.expression->element_bytes);
    end.offset = static_cast<std::int64_t>(end.expression->field_offset_bytes);
  }
  end.steps = steps_of(end);
}

/// Of an end that is an element.
RowSteps RowStatement::steps_of(const End& end) const {
  const Layout& layout = bound_.state.layouts[static_cast<std::size_t>(end.expression->id)];
  const std::size_t d = moving_dimension(end);
  if (d == end.expression->subscripts.size()) return {end.unit, end.unit, 1};
  return {end.unit, end.unit * std::max<std::int64_t>(layout.strides[d], 1),
          std::max<std::int64_t>(layout.shape[d], 1)};
}

/// The subscript that tells the elements of a row apart, by slices or turns; the number of all where none does.
std::size_t RowStatement::moving_dimension(const End& end) const {
  const auto is_turn = [&](const Expr& e) { return e.kind == ExprKind::variable && e.id == loop_->variable; };
  const auto is_moving = [&](const Subscript& sub) { return sub.is_slice || (loop_ && contains(*sub.lo, is_turn)); };
  const std::vector<Subscript>& subscripts = end.expression->subscripts;
  return static_cast<std::size_t>(std::ranges::find_if(subscripts, is_moving) - subscripts.begin());
}

/// Whether the elements of a row follow each other without anything between them.
bool RowStatement::are_contiguous(const Part& part, const End& end) const {
  if (!loop_) return names_runs(*bound_.model, *end.expression);
  return moving_dimension(end) + 1 == end.expression->subscripts.size() &&
         part.form.value_bytes == end.expression->element_bytes;
}

/// Whether rows that are the same have the same firsts for both of these, which are at the same end.
bool RowStatement::are_alike(const End& a, const End& b) const {
  if (!a.is_element() || !b.is_element() || a.unit != b.unit || a.offset != b.offset) return false;
  const Layout &of_a = bound_.state.layouts[static_cast<std::size_t>(a.expression->id)],
               &of_b = bound_.state.layouts[static_cast<std::size_t>(b.expression->id)];
  return of_a.shape == of_b.shape && of_a.strides == of_b.strides && have_same_subscripts(*a.expression, *b.expression);
}

std::size_t RowStatement::first_alike(std::size_t k, End Part::*end) const {
  const auto is_like_k = [&](const Part& p) {
    return p.form.table == parts_[k].form.table && are_alike(p.*end, parts_[k].*end);
  };
  return std::min(k, static_cast<std::size_t>(std::ranges::find_if(parts_, is_like_k) - parts_.begin()));
}

void RowStatement::make_code(jit::Wait wait) {
  const auto end_of = [](const End& end) { return RowEnd{&*end.program, end.unit, end.offset}; };
  std::vector<RowWish> near;
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    Part& part = parts_[k];
    if (part.far_firsts == k)
      if (auto call = lower_told_rows(bound_, s_, {{end_of(part.far)}, part.form.has_counts, part.told, k, loop_}))
        part.far_rows.emplace(std::move(*call), bound_.state, wait);
    if (part.form.table != k) continue;
    RowWish& wish = near.emplace_back(RowWish{{}, part.form.has_counts, part.told, k, loop_});
    for (std::size_t other = k; other < parts_.size(); ++other)
      if (const Part& p = parts_[other]; p.form.table == k && p.form.firsts == other)
        wish.ends.push_back(end_of(p.near));
  }
  if (auto call = lower_decided_rows(bound_, s_, near)) near_rows_.emplace(std::move(*call), bound_.state, wait);
}

std::vector<std::pair<std::string, const RowCall*>> RowStatement::calls() const {
  std::vector<std::pair<std::string, const RowCall*>> out;
  if (near_rows_) out.emplace_back(s_.is_pull ? "rows to ask for" : "rows to send", &near_rows_->call());
  for (const Part& part : parts_)
    if (part.far_rows)
      out.emplace_back(s_.is_pull ? "values of rows that were asked for" : "places of rows that have come",
                       &part.far_rows->call());
  return out;
}

/// The rows of all parts; false where it must be done, or tried, by the enumeration.
[[gnu::hot]] bool RowStatement::find_by_code() {
  if (!near_rows_) return false;
  for (;;) {
    if (columns_.empty()) note_columns();
    const jit::RowsOutcome outcome = near_rows_->run(bound_.state, 0, {}, {columns_, room_, found_});
    if (outcome == jit::rows_left) return false;
    if (outcome == jit::rows_done) break;
    columns_.clear();
    std::size_t n = 0;
    for (std::size_t k = 0; k < parts_.size(); ++k)
      for (const Columns& columns : columns_of(k)) {
        const std::size_t more = std::max(fewest_rows, 2 * static_cast<std::size_t>(room_[n++]));
        for (Column* column : columns) room_in(*column, more);
      }
  }
  const std::size_t a_table = loop_ && loop_->is_listed ? 2 : 1;
  for (std::size_t k = 0, n = 0; k < parts_.size(); ++k) {
    const std::size_t of = parts_[k].form.table;
    letters_.rows(k).rows = of == k ? static_cast<std::size_t>(found_[n]) : letters_.rows(of).rows;
    if (of == k) n += a_table;
  }
  return true;
}

/// Those that code writes for the reductions of one table, in its order: rows, and of listed ones the elements. None
/// where it is no table's first.
std::vector<RowStatement::Columns> RowStatement::columns_of(std::size_t table) {
  if (parts_[table].form.table != table) return {};
  Columns rows{&letters_.rows(table).peers}, elements;
  for (std::size_t k = table; k < parts_.size(); ++k)
    if (parts_[k].form.table == table && parts_[k].form.firsts == k)
      (parts_[k].form.is_listed ? elements : rows).push_back(&letters_.rows(k).firsts);
  for (Column& words : letters_.rows(table).words) rows.push_back(&words);
  if (elements.empty()) return {rows};
  return {rows, elements};
}

/// Where code is to write rows, and how many there is room for.
void RowStatement::note_columns() {
  room_.clear();
  for (std::size_t k = 0; k < parts_.size(); ++k)
    for (const Columns& columns : columns_of(k)) {
      std::size_t room = SIZE_MAX;
      for (Column* column : columns) {
        room = std::min(room, column->size());
        columns_.push_back(column->data());
      }
      room_.push_back(static_cast<std::int64_t>(room));
    }
  found_.resize(room_.size());
}

/// Of a loop, each turn is a row here.
void RowStatement::find_by_enumeration() {
  columns_.clear();
  for (std::size_t k = 0; k < parts_.size(); ++k) letters_.rows(k).rows = 0;
  enumeration_.each_decided([this](std::size_t k, const Block& block, const std::int64_t* peers) {
    Part& part = parts_[k];
    DecidedRows& rows = letters_.rows(k);
    const std::size_t count = block.count, before = rows.rows;
    const auto more = [&](Column& column) { return room_in(column, before + count) + before; };
    if (part.form.table == k) std::copy_n(peers, count, more(rows.peers));
    if (loop_ && part.form.table == k) std::fill_n(more(rows.words.back()), count, 1);
    if (part.form.firsts == k) {
      std::int64_t* const firsts = more(rows.firsts);
      std::int64_t* const counts = part.form.has_counts && !loop_ ? more(rows.words.back()) : nullptr;
      enumeration_.columns().run(*part.near.program, block, firsts, counts);
      part.near.scale(firsts, count);
    }
    for (std::size_t w = 0; part.form.table == k && w < part.told.size(); ++w)
      std::copy_n(block.words[static_cast<std::size_t>(part.told[w])].begin(), count, more(rows.words[w]));
    rows.rows += count;
  });
}

[[gnu::hot]] void RowStatement::send(const RankState& state, const std::vector<BoundMemory>& memory,
                                     std::uint64_t uniform_hash, transport::SparseExchange& exchange,
                                     std::vector<transport::OutgoingLetter>& letters) {
  bound_.state.parameters = state.parameters;
  bound_.state.contents = state.contents;
  for (Part& part : parts_)
    if (part.update) part.update->set_varying(state.parameters);
  if (!find_by_code()) find_by_enumeration();
  letters_.count();
  const std::span<const std::int64_t> sharers = letters_.sharers();
  if (memories_.size() < sharers.size()) memories_.resize(sharers.size()), bodies_.resize(sharers.size());
  own_ = {};
  bool has_bodies = false;
  for (std::size_t k = 0; k < sharers.size(); ++k) {
    const bool is_own = sharers[k] == bound_.state.rank;
    const auto to = static_cast<int>(bound_.world_rank_of(sharers[k]));
    std::size_t bytes = letters_.lay_out(k, /*are_apart=*/is_own);
    std::byte* letter = is_own ? nullptr : exchange.room(to, bytes);
    bodies_[k].clear();
    if (!letter && !is_own && is_long(k, exchange.least_body_bytes())) [[unlikely]] {
      bodies_[k].emplace_back();  // says that it has one
      has_bodies = true;
      bytes = letters_.lay_out(k, /*are_apart=*/true);
      letter = exchange.room(to, bytes);
    }
    if (!letter) {
      if (memories_[k].size() < bytes) memories_[k].resize(bytes);
      letter = memories_[k].data();
    }
    letters_.begin(k, uniform_hash, letter, /*has_body=*/!bodies_[k].empty());
    if (is_own) own_ = {letter, bytes};
    else letters.push_back({to, {letter, bytes}});
  }
  for (std::size_t k = 0; k < parts_.size(); ++k) letters_.fill(k, parts_[k].near.base(memory));
  if (has_bodies) [[unlikely]]
    add_bodies(memory, letters);
}

/// Whether the values of a share that can be apart are worth a body: many copies of few bytes are better made by
/// fill(). `least_bytes` 0: none are.
bool RowStatement::is_long(std::size_t share, std::size_t least_bytes) const {
  std::size_t rows = 0, bytes = 0;
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    if (!parts_[k].form.may_be_apart) continue;
    const RowLetters::Share part = *letters_.share_of(k, letters_.sharers()[share]);
    rows += part.rows;
    bytes += part.elements * parts_[k].form.value_bytes;
  }
  return least_bytes > 0 && bytes >= least_bytes && bytes / rows >= least_bytes / slices_of_least;
}

/// The slices that letters have left out.
void RowStatement::add_bodies(const std::vector<BoundMemory>& memory, std::span<transport::OutgoingLetter> letters) {
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    const Part& part = parts_[k];
    if (!part.form.may_be_apart) continue;
    const Column &peers = letters_.peers(k), &firsts = letters_.firsts(k);
    for (std::size_t row = 0; row < letters_.rows(k).rows; ++row)
      if (auto& body = bodies_[letters_.number_of(peers[row])]; !body.empty())
        body.emplace_back(part.near.base(memory) + firsts[row],
                          static_cast<std::size_t>(letters_.count_of(k, row)) * part.form.value_bytes);
  }
  for (transport::OutgoingLetter& letter : letters)
    letter.body = bodies_[letters_.number_of(bound_.number_of(letter.to))];
}

[[gnu::hot]] bool RowStatement::take(std::vector<Came>& letters) {
  if (bound_.members) std::ranges::sort(letters, {}, &Came::from);  // groups have an order of their own
  if (!own_.empty()) {
    const auto at = std::ranges::lower_bound(letters, bound_.state.rank, {}, &Came::from);
    own_segment_ = static_cast<std::size_t>(at - letters.begin());
    letters.insert(at, {bound_.state.rank, own_});
  }
  for (Part& part : parts_) part.come.clear(part.far.steps.step), part.values.clear();
  for (const Came& came : letters) {
    std::size_t at = letters_.read(came.letter, tables_);
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      Part& part = parts_[k];
      if (part.far_firsts == k) {
        const std::size_t first_row = part.come.rows();
        if (!locate(part, tables_[k])) return false;
        part.come.end_segment(first_row, part.form.has_counts);
      }
      const bool has_values = !s_.is_pull && !is_apart(part, came);
      part.values.push_back(has_values ? told_rows(part).last_values(came.letter, part.form.value_bytes, at) : nullptr);
    }
  }
  places_.resize(std::max(places_.size(), letters.size()));
  const auto far_firsts = [](const Part& p) { return p.far_firsts; };
  return s_.is_pull || (can_be_listed() && are_distinct_where_assigned(far_firsts, [&](const Part& p) {
                          return distinct_.are_distinct(p.come.firsts(), p.come.counts(), p.far.steps);
                        }));
}

/// Of the first of all parts that are alike, for those of which one is assigned.
template <class Leader, class F>
bool RowStatement::are_distinct_where_assigned(const Leader& first_alike, const F& are_distinct) const {
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    const auto is_assigned = [&](const Part& p) { return p.reduction->is_assign && first_alike(p) == k; };
    if (std::ranges::any_of(parts_, is_assigned) && !are_distinct(parts_[k])) return false;
  }
  return true;
}

std::span<const std::span<std::byte>> RowStatement::places(std::size_t n, const std::vector<BoundMemory>& memory) {
  places_[n].clear();
  for (const Part& part : parts_)
    if (part.form.may_be_apart)
      told_rows(part).add_places(memory[static_cast<std::size_t>(part.reduction->place->id)].base,
                                 told_rows(part).segments()[n], part.form.value_bytes, places_[n]);
  return places_[n];
}

/// Whether entries of lists can say where the elements are that are not just copied.
[[gnu::hot]] bool RowStatement::can_be_listed() const {
  return std::ranges::all_of(parts_, [&](const Part& p) {
    const Layout& layout = bound_.state.layouts[static_cast<std::size_t>(p.reduction->place->id)];
    return !p.update || layout.extent <= std::numeric_limits<jit::ListEntry>::max();
  });
}

[[gnu::hot]] std::size_t RowStatement::answer_bytes(std::size_t n) const {
  std::size_t at = 0;
  for (const Part& part : parts_)
    if (const std::size_t elements = told_rows(part).segments()[n].elements; elements > 0)
      at = aligned_in_letter(at) + elements * part.form.value_bytes;
  return at;
}

[[gnu::hot]] void RowStatement::answer(std::size_t n, const std::vector<BoundMemory>& memory, std::byte* to) const {
  std::byte* at = to;
  for (const Part& part : parts_) {
    const ArrivedRows::Segment& segment = told_rows(part).segments()[n];
    if (segment.elements == 0) continue;
    at = to + aligned_in_letter(static_cast<std::size_t>(at - to));
    at = told_rows(part).copy_from(part.far.base(memory), segment, part.form.value_bytes, at);
  }
}

[[gnu::hot]] bool RowStatement::take_answers(std::vector<Came>& answers) {
  std::ranges::sort(answers, {}, &Came::from);
  for (Part& part : parts_) part.come.clear(part.near.steps.step), part.values.clear();
  for (const Came& came : answers) {
    std::size_t at = 0;
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      Part& part = parts_[k];
      const auto asked = letters_.share_of(k, came.from);
      if (!asked) fail_damaged_letter();
      if (part.form.firsts == k)
        part.come.add_segment(part.form.is_listed ? asked->elements : asked->rows, asked->elements);
      part.values.push_back(target_rows(part).last_values(came.letter, part.form.value_bytes, at));
    }
  }
  if (answers.size() != letters_.sharers().size()) fail_damaged_letter();
  starts_.resize(answers.size());
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    Part& part = parts_[k];
    if (part.form.firsts != k) continue;
    for (std::size_t n = 0; n < answers.size(); ++n)
      starts_[letters_.number_of(answers[n].from)] = part.come.segments()[n].first_row;
    const auto [firsts, counts] = part.come.all_rows();
    letters_.copy_by_share(k, starts_, firsts, counts);
  }
  // Places in the order of environments more often ascend than sender by sender.
  const auto near_firsts = [](const Part& p) { return p.form.firsts; };
  return can_be_listed() && are_distinct_where_assigned(near_firsts, [&](const Part& p) {
           const bool has_counts = p.form.has_counts && !p.form.is_listed;
           return distinct_.are_distinct(std::span(letters_.rows(p.form.firsts).firsts).first(p.come.rows()),
                                         has_counts ? letters_.rows(p.form.table).words.back().data() : nullptr,
                                         p.near.steps);
         });
}

/// Adds where the elements of the rows are here; false where one is outside its buffer or has not as many elements as
/// at the other end.
[[gnu::hot]] bool RowStatement::locate(Part& part, const RowTable& table) {
  return locate_by_code(part, table) || locate_by_columns(part, table);
}

/// False where it must be done, or tried, by column programs.
[[gnu::hot]] bool RowStatement::locate_by_code(Part& part, const RowTable& table) {
  if (!part.far_rows || table.is_wide) return false;
  word_columns_.clear();
  for (std::size_t c = 0; c < part.form.columns; ++c) word_columns_.push_back(table.words + 4 * c * table.rows);
  const ArrivedRows::Room room = part.come.room(table.rows);
  std::int64_t* const columns[] = {room.firsts, room.counts};
  const auto rows = static_cast<std::int64_t>(table.rows);
  std::int64_t found = 0;
  if (part.far_rows->run(bound_.state, rows, word_columns_, {columns, {&rows, 1}, {&found, 1}}) != jit::rows_done)
    return false;
  part.come.add(table.rows);
  return true;
}

bool RowStatement::locate_by_columns(Part& part, const RowTable& table) {
  for (std::size_t first = 0; first < table.rows; first += block_.count) {
    block_.count = std::min(Block::most_rows, table.rows - first);
    for (std::size_t w = 0; w < part.told.size(); ++w) {
      std::int64_t* const words = room_in(block_.words[static_cast<std::size_t>(part.told[w])], block_.count);
      for (std::size_t row = 0; row < block_.count; ++row) words[row] = table.at(w, first + row);
    }
    const auto [firsts, counts] = part.come.room(block_.count);
    const auto count_of = [&](std::size_t row) {
      return part.form.has_counts ? table.at(part.told.size(), first + row) : 1;
    };
    try {
      if (loop_ && !has_last_turns(part, count_of, firsts)) return false;
      const bool are_counted = part.far.is_element() && !loop_;
      enumeration_.columns().run(*part.far.program, block_, firsts, are_counted ? counts : nullptr);
      for (std::size_t row = 0; counts && row < block_.count; ++row) {
        if (!are_counted) counts[row] = loop_ ? count_of(row) : 1;
        if (counts[row] != count_of(row)) return false;
      }
    } catch (const BlockFault&) {
      return false;
    }
    part.far.scale(firsts, block_.count);
    part.come.add(block_.count);
  }
  return true;
}

/// Whether the last turns of the loops of a block are inside, too; throws BlockFault where one is not.
template <class CountOf>
bool RowStatement::has_last_turns(Part& part, const CountOf& count_of, std::int64_t* firsts) {
  Column& turns = block_.words[static_cast<std::size_t>(loop_->variable)];
  const Column first_turns = turns;
  for (std::size_t row = 0; row < block_.count; ++row)
    if (count_of(row) < 1 || __builtin_add_overflow(turns[row], count_of(row) - 1, &turns[row])) return false;
  enumeration_.columns().run(*part.far.program, block_, firsts);
  turns = first_turns;
  return true;
}

std::vector<Notice> RowStatement::notices(std::span<const Came> letters) const {
  std::vector<Notice> out;
  for (const Came& came : letters) {
    if (came.from == bound_.state.rank) continue;
    Notice& notice = out.emplace_back();
    notice.peer = came.from;
    letters_.read(came.letter, tables_);
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      const Part& part = parts_[k];
      const RowTable& table = tables_[k];
      if (table.rows == 0) continue;
      const auto most = s_.is_pull || came.has_body
                            ? most_message_elements
                            : static_cast<std::int64_t>(came.letter.size() / part.form.value_bytes);
      Piece piece;
      for (std::size_t column = 0; column <= part.told.size(); ++column) {
        const bool is_count = column == part.told.size();
        Words& words = piece.tracks.emplace_back().bases;
        for (std::size_t row = 0; row < table.rows; ++row) {
          if (!loop_) {
            words.push_back(is_count && !part.form.has_counts ? 1 : table.at(column, row));
            continue;
          }
          const std::int64_t count = table.at(part.told.size(), row), first = is_count ? 1 : table.at(column, row);
          if (count < 1 || count > most - std::ssize(words)) fail_damaged_letter();
          for (std::int64_t turn = 0; turn < count; ++turn) words.push_back(first + (column == part.turn ? turn : 0));
        }
      }
      piece.list_length = std::ssize(piece.tracks.front().bases);
      notice.parts.push_back({static_cast<int>(k), {std::move(piece)}});
    }
  }
  return out;
}

std::span<const std::byte> RowStatement::payload(std::span<const std::byte> letter) const {
  return letter.subspan(std::min(letters_.read(letter, tables_), letter.size()));
}

/// The values of this rank's share, from where they are to where they go.
[[gnu::hot]] void RowStatement::copy_own(const Part& part, const std::vector<BoundMemory>& memory) const {
  const ArrivedRows::Segment& segment = told_rows(part).segments()[own_segment_];
  const auto k = static_cast<std::size_t>(&part - parts_.data());
  const Column &peers = letters_.peers(k), &firsts = letters_.firsts(k);
  const std::span<const std::int64_t> places = told_rows(part).firsts().subspan(segment.first_row, segment.rows);
  std::byte* const to = memory[static_cast<std::size_t>(part.reduction->place->id)].base;
  for (std::size_t row = 0, n = 0; n < places.size(); ++row)
    if (peers[row] == bound_.state.rank)
      gather_row(to + places[n++], part.near.base(memory), firsts[row], part.form.step_bytes,
                 static_cast<std::size_t>(letters_.count_of(k, row)), part.form.value_bytes);
}

[[gnu::hot]] const ReadyCall* RowStatement::apply(const std::vector<BoundMemory>& memory) {
  const ReadyCall* faulty = nullptr;
  for (Part& part : parts_) {
    if (!part.update) {
      target_rows(part).copy_to(memory[static_cast<std::size_t>(part.reduction->place->id)].base, part.values,
                                part.form.value_bytes);
      if (part.form.may_be_apart && has_own()) copy_own(part, memory);
      continue;
    }
    const std::vector<ArrivedRows::Segment>& segments = target_rows(part).segments();
    for (std::size_t n = 0; n < segments.size(); ++n) {
      target_rows(part).list(segments[n], listed_);
      if (!listed_.empty() && part.update->unpack_listed(memory, part.values[n], listed_) != 0)
        faulty = faulty ? faulty : &*part.update;
    }
  }
  return faulty;
}

}  // namespace kplan
