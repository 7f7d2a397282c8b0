#include "engine/runtime/row_letters.hpp"

#include <algorithm>
#include <utility>

#include "engine/analysis/pieces.hpp"

namespace kplan {
namespace {

constexpr std::size_t any = SIZE_MAX;  // not known when compiled

/// Rows of one peer after the other are taken together where there are so many on average.
constexpr std::size_t fewest_in_run = 4;

template <std::size_t bytes>
void copy_elements(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                   std::size_t count) {
  for (std::size_t k = 0; k < count; ++k, to += to_step, from += from_step) std::memcpy(to, from, bytes);
}

template <class Word>
void copy_words(std::byte* to, const std::int64_t* from, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) {
    const auto word = static_cast<Word>(from[k]);
    std::memcpy(to + sizeof(Word) * k, &word, sizeof word);
  }
}

/// The low bytes of integers, see copy_row; or what lies there.
template <std::size_t bytes>
void gather(std::byte* to, const std::byte* base, const std::int64_t* firsts, std::size_t count,
            std::size_t value_bytes = bytes) {
  if constexpr (bytes == any) {
    for (std::size_t k = 0; k < count; ++k, to += value_bytes) gather_row(to, base, firsts[k], 0, 1, value_bytes);
    return;
  }
  for (std::size_t k = 0; !base && k < count; ++k) std::memcpy(to + bytes * k, firsts + k, bytes);
  for (std::size_t k = 0; base && k < count; ++k) std::memcpy(to + bytes * k, base + firsts[k], bytes);
}

}  // namespace

[[gnu::hot]] void copy_row(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                           std::size_t count, std::size_t value_bytes) {
  if (value_bytes == 8) return copy_elements<8>(to, to_step, from, from_step, count);
  if (value_bytes == 4) return copy_elements<4>(to, to_step, from, from_step, count);
  if (value_bytes == 16) return copy_elements<16>(to, to_step, from, from_step, count);
  for (std::size_t k = 0; k < count; ++k, to += to_step, from += from_step) std::memcpy(to, from, value_bytes);
}

RowLetters::RowLetters(std::vector<RowForm> forms, bool have_values, std::int64_t rank_count)
    : forms_(std::move(forms)),
      have_values_(have_values),
      rows_(forms_.size()),
      numbers_(static_cast<std::size_t>(rank_count), -1),
      cursors_(forms_.size()),
      runs_(forms_.size()) {
  for (std::size_t k = 0; k < forms_.size(); ++k)
    if (forms_[k].table == k) rows_[k].words.resize(forms_[k].columns);
}

[[gnu::hot]] void RowLetters::add_share(std::int64_t peer) {
  numbers_[static_cast<std::size_t>(peer)] = static_cast<std::int32_t>(sharers_.size());
  sharers_.push_back(peer);
  for (std::vector<Cursor>& cursors : cursors_) {
    if (cursors.size() < sharers_.size()) cursors.emplace_back();
    cursors[sharers_.size() - 1] = {};
  }
}

[[gnu::hot]] void RowLetters::count() {
  for (const std::int64_t peer : sharers_) numbers_[static_cast<std::size_t>(peer)] = -1;
  sharers_.clear();
  for (std::size_t k = 0; k < forms_.size(); ++k) {
    if (forms_[k].table == k) count_rows(k);
    else std::copy_n(cursors_[forms_[k].table].begin(), sharers_.size(), cursors_[k].begin());
  }
}

[[gnu::hot]] void RowLetters::note_runs(std::size_t table) {
  const std::size_t rows = rows_[table].rows;
  const std::int64_t* const peers = rows_[table].peers.data();
  Runs& runs = runs_[table];
  if (runs.starts.size() <= rows) runs.starts.resize(rows + 1);
  std::size_t* const starts = runs.starts.data();
  std::size_t count = std::min<std::size_t>(rows, 1);
  starts[0] = 0;
  for (std::size_t row = 1; row < rows; ++row) {  // without a jump, since peers can be random
    starts[count] = row;
    count += peers[row] != peers[row - 1] ? 1 : 0;
  }
  starts[count] = rows;
  runs.count = count * fewest_in_run <= rows ? count : 0;
}

[[gnu::hot]] void RowLetters::count_rows(std::size_t table) {
  const DecidedRows& decided = rows_[table];
  const bool has_counts = forms_[table].has_counts;
  std::vector<Cursor>& cursors = cursors_[table];
  const std::int64_t* const peers = decided.peers.data();
  const std::int32_t* const numbers = numbers_.data();
  const auto cursor_of = [&](std::int64_t peer) -> Cursor& {
    if (numbers[peer] < 0) [[unlikely]]
      add_share(peer);
    return cursors[static_cast<std::size_t>(numbers[peer])];
  };
  note_runs(table);
  const Runs& runs = runs_[table];
  for (std::size_t run = 0; run < runs.count; ++run) {
    const std::size_t first = runs.starts[run], end = runs.starts[run + 1];
    Cursor& cursor = cursor_of(peers[first]);
    cursor.rows += end - first;
    for (std::size_t row = first; has_counts && row < end; ++row)
      cursor.elements += static_cast<std::size_t>(decided.words.back()[row]);
  }
  for (std::size_t row = 0; runs.count == 0 && row < decided.rows; ++row) {
    Cursor& cursor = cursor_of(peers[row]);
    ++cursor.rows;
    if (has_counts) cursor.elements += static_cast<std::size_t>(decided.words.back()[row]);
  }
  std::int64_t wide = 0;
  for (const Column& words : decided.words)
    for (const std::int64_t word : std::span(words).first(decided.rows)) wide |= word ^ static_cast<std::int32_t>(word);
  for (Cursor& cursor : cursors) {
    cursor.is_wide = wide != 0;
    if (!has_counts) cursor.elements = cursor.rows;
  }
}

[[gnu::hot]] std::size_t RowLetters::lay_out(std::size_t share, bool are_apart) {
  std::size_t at = sizeof(LetterHead) + 8 * forms_.size();
  for (std::size_t k = 0; k < forms_.size(); ++k) {
    if (forms_[k].table != k) continue;
    Cursor& cursor = cursors_[k][share];
    cursor.words_offset = at;
    at += cursor.rows * forms_[k].columns * (cursor.is_wide ? 8 : 4);
  }
  at = aligned_in_letter(at);
  for (std::size_t k = 0; have_values_ && k < forms_.size(); ++k) {
    Cursor& cursor = cursors_[k][share];
    cursor.values_offset = 0;
    if (cursor.elements == 0 || (are_apart && forms_[k].may_be_apart)) continue;
    cursor.values_offset = at = aligned_in_letter(at);
    at += cursor.elements * forms_[k].value_bytes;
  }
  return at;
}

[[gnu::hot]] void RowLetters::begin(std::size_t share, std::uint64_t uniform_hash, std::byte* letter, bool has_body) {
  const LetterHead head{has_body ? LetterKind::rows_and_body : LetterKind::rows, uniform_hash};
  std::memcpy(letter, &head, sizeof head);
  for (std::size_t k = 0; k < forms_.size(); ++k) {
    Cursor& cursor = cursors_[k][share];
    const std::uint64_t rows = 2 * cursor.rows + (cursor.is_wide ? 1 : 0);
    std::memcpy(letter + sizeof head + 8 * k, &rows, sizeof rows);
    cursor.words = letter + cursor.words_offset;
    cursor.values = cursor.values_offset > 0 ? letter + cursor.values_offset : nullptr;
  }
}

[[gnu::hot]] void RowLetters::fill(std::size_t reduction, const std::byte* base) {
  const RowForm& form = forms_[reduction];
  const std::size_t columns = form.table == reduction ? form.columns : 0;
  const bool is_wide = !sharers_.empty() && cursors_[reduction][0].is_wide;
  if (columns == 0 && !have_values_) return;
  if (form.is_listed) {
    if (is_wide) fill_listed<std::int64_t, any>(reduction, base);
    else if (form.value_bytes == 8) fill_listed<std::int32_t, 8>(reduction, base);
    else if (form.value_bytes == 4) fill_listed<std::int32_t, 4>(reduction, base);
    else fill_listed<std::int32_t, any>(reduction, base);
    return;
  }
  const std::size_t bytes = !have_values_ || form.has_counts ? any : form.value_bytes;
  if (runs_[form.table].count > 0) {
    if (is_wide) fill_runs<std::int64_t, any>(reduction, base);
    else if (bytes == 8) fill_runs<std::int32_t, 8>(reduction, base);
    else if (bytes == 4) fill_runs<std::int32_t, 4>(reduction, base);
    else fill_runs<std::int32_t, any>(reduction, base);
    return;
  }
  if (columns == 0 && bytes == 8) fill_rows<std::int32_t, 0, 8>(reduction, base);
  else if (columns == 0 && bytes == 4) fill_rows<std::int32_t, 0, 4>(reduction, base);
  else if (columns == 0) fill_rows<std::int32_t, 0, any>(reduction, base);
  else if (is_wide) fill_rows<std::int64_t, any, any>(reduction, base);
  else if (columns == 1 && bytes == 8) fill_rows<std::int32_t, 1, 8>(reduction, base);
  else if (columns == 1 && bytes == 4) fill_rows<std::int32_t, 1, 4>(reduction, base);
  else if (bytes == 8) fill_rows<std::int32_t, any, 8>(reduction, base);
  else if (bytes == 4) fill_rows<std::int32_t, any, 4>(reduction, base);
  else fill_rows<std::int32_t, any, any>(reduction, base);
}

/// Words of so many columns; of a push, elements of so many bytes, one a row.
template <class Word, std::size_t columns, std::size_t bytes>
void RowLetters::fill_rows(std::size_t reduction, const std::byte* base) {
  // Of their own, since what is written could be any of these members.
  const DecidedRows& decided = rows_[reduction];
  const std::size_t rows = decided.rows, column_count = columns == any ? decided.words.size() : columns;
  const std::int64_t *const peers = this->peers(reduction).data(), *const firsts = this->firsts(reduction).data();
  const std::int64_t* const only = columns == 1 ? decided.words[0].data() : nullptr;
  const std::int32_t* const numbers = numbers_.data();
  const std::size_t value_bytes = forms_[reduction].value_bytes;
  const std::int64_t step = forms_[reduction].step_bytes;
  Cursor* const cursors = cursors_[reduction].data();
  for (std::size_t row = 0; row < rows; ++row) {
    Cursor& to = cursors[numbers[peers[row]]];
    const std::size_t n = to.at++;
    for (std::size_t c = 0; c < column_count; ++c) {
      const auto word = static_cast<Word>(columns == 1 ? only[row] : decided.words[c][row]);
      std::memcpy(to.words + sizeof(Word) * (c * to.rows + n), &word, sizeof word);
    }
    if constexpr (bytes != any) {
      auto value = static_cast<std::uint64_t>(firsts[row]);  // see copy_row
      if (base) std::memcpy(&value, base + firsts[row], bytes);
      std::memcpy(to.values + bytes * n, &value, bytes);
    } else if (to.values) {
      const auto count = static_cast<std::size_t>(count_of(reduction, row));
      gather_row(to.values, base, firsts[row], step, count, value_bytes);
      to.values += count * value_bytes;
    }
  }
}

/// The same, run by run.
template <class Word, std::size_t bytes>
void RowLetters::fill_runs(std::size_t reduction, const std::byte* base) {
  const std::vector<Column>& words = rows_[reduction].words;
  const Column &peers = this->peers(reduction), &firsts = this->firsts(reduction);
  const Runs& runs = runs_[forms_[reduction].table];
  const std::size_t value_bytes = forms_[reduction].value_bytes;
  const std::int64_t step = forms_[reduction].step_bytes;
  for (std::size_t run = 0; run < runs.count; ++run) {
    const std::size_t first = runs.starts[run], count = runs.starts[run + 1] - first;
    Cursor& to = cursors_[reduction][number_of(peers[first])];
    const std::size_t n = std::exchange(to.at, to.at + count);
    for (std::size_t c = 0; c < words.size(); ++c)
      copy_words<Word>(to.words + sizeof(Word) * (c * to.rows + n), words[c].data() + first, count);
    if constexpr (bytes != any) {
      gather<bytes>(to.values + bytes * n, base, firsts.data() + first, count);
    } else if (to.values) {
      std::byte* values = to.values;
      for (std::size_t row = first; row < first + count; ++row) {
        const auto elements = static_cast<std::size_t>(count_of(reduction, row));
        gather_row(values, base, firsts[row], step, elements, value_bytes);
        values += elements * value_bytes;
      }
      to.values = values;
    }
  }
}

/// The same of rows whose elements lie anywhere.
template <class Word, std::size_t bytes>
void RowLetters::fill_listed(std::size_t reduction, const std::byte* base) {
  const std::vector<Column>& words = rows_[reduction].words;
  const Column& peers = this->peers(reduction);
  const std::int64_t* firsts = this->firsts(reduction).data();
  const std::size_t value_bytes = forms_[reduction].value_bytes;
  for (std::size_t row = 0; row < rows_[reduction].rows; ++row) {
    Cursor& to = cursors_[reduction][number_of(peers[row])];
    const std::size_t n = to.at++;
    for (std::size_t c = 0; c < words.size(); ++c)
      copy_words<Word>(to.words + sizeof(Word) * (c * to.rows + n), words[c].data() + row, 1);
    if (!to.values) continue;
    const auto count = static_cast<std::size_t>(count_of(reduction, row));
    gather<bytes>(to.values, base, firsts, count, value_bytes);
    to.values += count * value_bytes;
    firsts += count;
  }
}

[[gnu::hot]] std::optional<RowLetters::Share> RowLetters::share_of(std::size_t reduction, std::int64_t peer) const {
  if (numbers_[static_cast<std::size_t>(peer)] < 0) return std::nullopt;
  const Cursor& cursor = cursors_[reduction][number_of(peer)];
  return Share{cursor.rows, cursor.elements};
}

[[gnu::hot]] void RowLetters::copy_by_share(std::size_t reduction, std::span<std::size_t> starts, std::int64_t* firsts,
                                            std::int64_t* counts) const {
  const Column& peers = this->peers(reduction);
  const std::int64_t* from = this->firsts(reduction).data();
  const bool is_listed = forms_[reduction].is_listed;
  for (std::size_t row = 0; row < rows_[reduction].rows; ++row) {
    std::size_t& to = starts[number_of(peers[row])];
    const std::int64_t count = count_of(reduction, row);
    for (std::int64_t n = is_listed ? count : 1; n > 0; --n, ++to) {
      firsts[to] = *from++;
      if (counts) counts[to] = is_listed ? 1 : count;
    }
  }
}

[[gnu::hot]] std::size_t RowLetters::read(std::span<const std::byte> letter, std::vector<RowTable>& tables) const {
  tables.resize(forms_.size());
  std::size_t at = sizeof(LetterHead) + 8 * forms_.size();
  if (letter.size() < at) fail_damaged_letter();
  for (std::size_t k = 0; k < forms_.size(); ++k) {
    const RowForm& form = forms_[k];
    std::uint64_t rows = 0;
    std::memcpy(&rows, letter.data() + sizeof(LetterHead) + 8 * k, sizeof rows);
    RowTable& table = tables[k];
    if (form.table != k) {
      table = tables[form.table];
    } else {
      table = {rows % 2 != 0, rows / 2, letter.data() + at};
      const std::size_t row_bytes = form.columns * (table.is_wide ? 8 : 4);
      if (row_bytes == 0 ? std::cmp_greater(table.rows, most_message_elements)
                         : table.rows > (letter.size() - at) / row_bytes)
        fail_damaged_letter();
      at += table.rows * row_bytes;
    }
    if (have_values_ && !form.has_counts && table.rows > letter.size() / form.value_bytes) fail_damaged_letter();
  }
  at = aligned_in_letter(at);
  if (at > aligned_in_letter(letter.size())) fail_damaged_letter();
  return at;
}

}  // namespace kplan
