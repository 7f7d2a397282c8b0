#include "engine/runtime/row_finder.hpp"

#include <algorithm>

#include "engine/analysis/pattern_finder.hpp"
#include "engine/runtime/row_choice.hpp"

namespace kplan {
namespace {

/// Columns have room for so many in the beginning: statements of few rows have them close together.
constexpr std::size_t fewest_rows = 16;

}  // namespace

RowFinder::RowFinder(const BoundPlan& bound, const Statement& s, jit::Wait wait)
    : bound_(bound), s_(s), loop_(loop_of_rows(*bound.model, s)), enumeration_(bound, s), block_(s.variables.size()) {
  for (std::size_t k = 0; k < s_.reductions.size(); ++k) {
    parts_.push_back(make_part(k));
    PartRows& part = parts_.back();
    const bool is_near_one = is_one_element(*bound_.model, *part.near.expression),
               is_far_one = is_near_one && is_one_element(*bound_.model, *part.far.expression);
    prepare_end(part, part.near, !is_near_one);
    prepare_end(part, part.far, !is_far_one);
    part.are_far_single = is_far_one && !loop_;
    part.form.step_bytes = part.near.steps.step;
    part.form.firsts = first_alike(k, &PartRows::near);
    part.far_firsts = first_alike(k, &PartRows::far);
  }
  for (PartRows& part : parts_) part.form.may_be_apart = may_be_apart(part);
  make_code(wait);
}

/// Whether its values need not be in a letter.
bool RowFinder::may_be_apart(const PartRows& part) const {
  const auto is_written = [&](const PartRows& p) {
    return bound_.model->storage_of(p.reduction->place->id) == bound_.model->storage_of(part.near.expression->id);
  };
  return !s_.is_pull && part.form.has_counts && !part.form.is_listed &&
         std::ranges::none_of(parts_, &PartRows::is_update) && std::ranges::none_of(parts_, is_written) &&
         are_contiguous(part, part.near) && are_contiguous(part, part.far);
}

PartRows RowFinder::make_part(std::size_t k) const {
  const Reduction& r = s_.reductions[k];
  PartRows part;
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
  const auto has_same_rows = [&](const PartRows& other) {
    return (loop_ || (!other.form.has_counts && !has_counts)) && other.told == part.told &&
           to_text(*other.reduction->sender) == to_text(*r.sender) &&
           to_text(*other.reduction->receiver) == to_text(*r.receiver);
  };
  part.form.table = static_cast<std::size_t>(std::ranges::find_if(parts_, has_same_rows) - parts_.begin());
  return part;
}

void RowFinder::prepare_end(PartRows& part, End& end, bool are_runs) {
  using Form = ColumnProgram::Form;
  const Form of_element = are_runs ? Form::runs : Form::elements;
  end.program = enumeration_.columns().program(*end.expression, end.is_element() ? of_element : Form::integers);
  if (!end.is_element()) return;
  const bool goes_to_list = part.is_update() && (&end == &part.near) == s_.is_pull;
  if (!goes_to_list) {
    end.unit = static_cast<std::int64_t>(end.expression->element_bytes);
    end.offset = static_cast<std::int64_t>(end.expression->field_offset_bytes);
  }
  end.steps = steps_of(end);
}

/// Of an end that is an element.
RowSteps RowFinder::steps_of(const End& end) const {
  const Layout& layout = bound_.state.layouts[static_cast<std::size_t>(end.expression->id)];
  const std::size_t d = moving_dimension(end);
  if (d == end.expression->subscripts.size()) return {end.unit, end.unit, 1};
  return {end.unit, end.unit * std::max<std::int64_t>(layout.strides[d], 1),
          std::max<std::int64_t>(layout.shape[d], 1)};
}

/// The subscript that tells the elements of a row apart, by slices or turns; the number of all where none does.
std::size_t RowFinder::moving_dimension(const End& end) const {
  const auto is_turn = [&](const Expr& e) { return e.kind == ExprKind::variable && e.id == loop_->variable; };
  const auto is_moving = [&](const Subscript& sub) { return sub.is_slice || (loop_ && contains(*sub.lo, is_turn)); };
  const std::vector<Subscript>& subscripts = end.expression->subscripts;
  return static_cast<std::size_t>(std::ranges::find_if(subscripts, is_moving) - subscripts.begin());
}

/// Whether the elements of a row follow each other without anything between them.
bool RowFinder::are_contiguous(const PartRows& part, const End& end) const {
  if (!loop_) return names_runs(*bound_.model, *end.expression);
  return moving_dimension(end) + 1 == end.expression->subscripts.size() &&
         part.form.value_bytes == end.expression->element_bytes;
}

/// Whether rows that are the same have the same firsts for both of these, which are at the same end.
bool RowFinder::are_alike(const End& a, const End& b) const {
  if (!a.is_element() || !b.is_element() || a.unit != b.unit || a.offset != b.offset) return false;
  const Layout &of_a = bound_.state.layouts[static_cast<std::size_t>(a.expression->id)],
               &of_b = bound_.state.layouts[static_cast<std::size_t>(b.expression->id)];
  return of_a.shape == of_b.shape && of_a.strides == of_b.strides && have_same_subscripts(*a.expression, *b.expression);
}

std::size_t RowFinder::first_alike(std::size_t k, End PartRows::*end) const {
  const auto is_like_k = [&](const PartRows& p) {
    return p.form.table == parts_[k].form.table && are_alike(p.*end, parts_[k].*end);
  };
  return std::min(k, static_cast<std::size_t>(std::ranges::find_if(parts_, is_like_k) - parts_.begin()));
}

void RowFinder::make_code(jit::Wait wait) {
  const auto end_of = [](const End& end) { return RowEnd{&*end.program, end.unit, end.offset}; };
  std::vector<RowWish> near;
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    PartRows& part = parts_[k];
    if (part.far_firsts == k)
      if (auto call = lower_told_rows(bound_, s_, {{end_of(part.far)}, part.form.has_counts, part.told, k, loop_}))
        part.code.emplace(std::move(*call), bound_.state, wait);
    if (part.form.table != k) continue;
    RowWish& wish = near.emplace_back(RowWish{{}, part.form.has_counts, part.told, k, loop_});
    for (std::size_t other = k; other < parts_.size(); ++other)
      if (const PartRows& p = parts_[other]; p.form.table == k && p.form.firsts == other)
        wish.ends.push_back(end_of(p.near));
  }
  if (auto call = lower_decided_rows(bound_, s_, near)) near_rows_.emplace(std::move(*call), bound_.state, wait);
}

std::vector<std::pair<std::string, const RowCall*>> RowFinder::calls() const {
  std::vector<std::pair<std::string, const RowCall*>> out;
  if (near_rows_) out.emplace_back(s_.is_pull ? "rows to ask for" : "rows to send", &near_rows_->call());
  for (const PartRows& part : parts_)
    if (part.code)
      out.emplace_back(s_.is_pull ? "values of rows that were asked for" : "places of rows that have come",
                       &part.code->call());
  return out;
}

/// The rows of all parts; false where it must be done, or tried, by the enumeration.
[[gnu::hot]] bool RowFinder::find_by_code(RowLetters& letters) {
  if (!near_rows_) return false;
  for (;;) {
    if (columns_.empty()) note_columns(letters);
    const jit::RowsOutcome outcome = near_rows_->run(bound_.state, 0, {}, {columns_, room_, found_});
    if (outcome == jit::rows_left) return false;
    if (outcome == jit::rows_done) break;
    columns_.clear();
    std::size_t n = 0;
    for (std::size_t k = 0; k < parts_.size(); ++k)
      for (const Columns& columns : columns_of(letters, k)) {
        const std::size_t more = std::max(fewest_rows, 2 * static_cast<std::size_t>(room_[n++]));
        for (Column* column : columns) room_in(*column, more);
      }
  }
  const std::size_t a_table = loop_ && loop_->is_listed ? 2 : 1;
  for (std::size_t k = 0, n = 0; k < parts_.size(); ++k) {
    const std::size_t of = parts_[k].form.table;
    letters.rows(k).rows = of == k ? static_cast<std::size_t>(found_[n]) : letters.rows(of).rows;
    if (of == k) n += a_table;
  }
  return true;
}

/// Those that code writes for the reductions of one table, in its order: rows, and of listed ones the elements. None
/// where it is no table's first.
std::vector<RowFinder::Columns> RowFinder::columns_of(RowLetters& letters, std::size_t table) const {
  if (parts_[table].form.table != table) return {};
  Columns rows{&letters.rows(table).peers}, elements;
  for (std::size_t k = table; k < parts_.size(); ++k)
    if (parts_[k].form.table == table && parts_[k].form.firsts == k)
      (parts_[k].form.is_listed ? elements : rows).push_back(&letters.rows(k).firsts);
  for (Column& words : letters.rows(table).words) rows.push_back(&words);
  if (elements.empty()) return {rows};
  return {rows, elements};
}

/// Where code is to write rows, and how many there is room for.
void RowFinder::note_columns(RowLetters& letters) {
  room_.clear();
  for (std::size_t k = 0; k < parts_.size(); ++k)
    for (const Columns& columns : columns_of(letters, k)) {
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
void RowFinder::find_by_enumeration(RowLetters& letters) {
  columns_.clear();
  for (std::size_t k = 0; k < parts_.size(); ++k) letters.rows(k).rows = 0;
  enumeration_.each_decided([&](std::size_t k, const Block& block, const std::int64_t* peers) {
    PartRows& part = parts_[k];
    DecidedRows& rows = letters.rows(k);
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

/// False where it must be done, or tried, by column programs.
[[gnu::hot]] bool RowFinder::locate_by_code(PartRows& part, const RowTable& table, ArrivedRows& to) {
  if (!part.code || table.is_wide) return false;
  word_columns_.clear();
  for (std::size_t c = 0; c < part.form.columns; ++c) word_columns_.push_back(table.words + 4 * c * table.rows);
  const ArrivedRows::Room room = to.room(table.rows);
  std::int64_t* const columns[] = {room.firsts, room.counts};
  const auto rows = static_cast<std::int64_t>(table.rows);
  std::int64_t found = 0;
  if (part.code->run(bound_.state, rows, word_columns_, {columns, {&rows, 1}, {&found, 1}}) != jit::rows_done)
    return false;
  to.add(table.rows);
  return true;
}

bool RowFinder::locate_by_columns(PartRows& part, const RowTable& table, ArrivedRows& to) {
  for (std::size_t first = 0; first < table.rows; first += block_.count) {
    block_.count = std::min(Block::most_rows, table.rows - first);
    for (std::size_t w = 0; w < part.told.size(); ++w) {
      std::int64_t* const words = room_in(block_.words[static_cast<std::size_t>(part.told[w])], block_.count);
      for (std::size_t row = 0; row < block_.count; ++row) words[row] = table.at(w, first + row);
    }
    const auto [firsts, counts] = to.room(block_.count);
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
    to.add(block_.count);
  }
  return true;
}

/// Whether the last turns of the loops of a block are inside, too; throws BlockFault where one is not.
template <class CountOf>
bool RowFinder::has_last_turns(PartRows& part, const CountOf& count_of, std::int64_t* firsts) {
  Column& turns = block_.words[static_cast<std::size_t>(loop_->variable)];
  const Column first_turns = turns;
  for (std::size_t row = 0; row < block_.count; ++row)
    if (count_of(row) < 1 || __builtin_add_overflow(turns[row], count_of(row) - 1, &turns[row])) return false;
  enumeration_.columns().run(*part.far.program, block_, firsts);
  turns = first_turns;
  return true;
}

Piece RowFinder::told_environments(std::size_t part, const RowTable& table, std::int64_t most) const {
  const PartRows& p = parts_[part];
  Piece out;
  for (std::size_t column = 0; column <= p.told.size(); ++column) {
    const bool is_one = column == p.told.size() && (loop_ || !p.form.has_counts), is_turn = loop_ && column == p.turn;
    Words& words = out.tracks.emplace_back().bases;
    for (std::size_t row = 0; row < table.rows; ++row) {
      const std::int64_t word = is_one ? 1 : table.at(column, row), turns = loop_ ? table.at(p.told.size(), row) : 1;
      if (loop_ && (turns < 1 || turns > most - std::ssize(words))) fail_damaged_letter();
      for (std::int64_t turn = 0; turn < turns; ++turn) words.push_back(is_turn ? word + turn : word);
    }
  }
  out.list_length = std::ssize(out.tracks.front().bases);
  return out;
}

}  // namespace kplan
