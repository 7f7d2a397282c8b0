// Letters of rows, written and read back; and letters that are not what they say.
#include "engine/runtime/row_letters.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "engine/runtime/arrived_rows.hpp"
#include "kplan/transport.hpp"

using namespace kplan;

namespace {

using Bytes = std::vector<std::byte>;

constexpr std::int64_t longest_step_bytes = 72;

/// All letters of a rank's rows, by peer.
std::map<std::int64_t, Bytes> letters_of(RowLetters& letters, const std::byte* base, std::uint64_t hash) {
  letters.count();
  std::map<std::int64_t, Bytes> out;
  for (std::size_t share = 0; share < letters.sharers().size(); ++share) {
    Bytes& letter = out[letters.sharers()[share]];
    letter.resize(letters.lay_out(share));
    letters.begin(share, hash, letter.data());
  }
  for (std::size_t k = 0; k < letters.forms().size(); ++k) letters.fill(k, base);
  return out;
}

struct Sent {
  std::vector<std::int64_t> words;
  std::vector<std::uint8_t> bytes;
  bool operator==(const Sent&) const = default;
};

/// Rows of all reductions, to random peers, or many after each other to one. `widest`: of words.
void draw_rows(std::mt19937& random, RowLetters& letters, std::int64_t rank_count, std::int64_t widest,
               std::size_t memory_bytes) {
  const auto draw = [&](std::int64_t below) { return static_cast<std::int64_t>(random() % below); };
  for (std::size_t k = 0; k < letters.forms().size(); ++k) {
    const RowForm& form = letters.forms()[k];
    DecidedRows& rows = letters.rows(k);
    rows.rows = form.table == k ? static_cast<std::size_t>(draw(40)) : letters.rows(form.table).rows;
    const std::int64_t one_of = draw(2) == 0 ? 1 : 2 + draw(12);  // rows go to another peer than the one before
    rows.peers.assign(form.table == k ? rows.rows + 3 : 0, 0);
    rows.firsts.clear();
    for (Column& words : rows.words) words.resize(rows.rows + 3);
    for (std::size_t row = 0; row < rows.rows; ++row) {
      if (form.table == k) rows.peers[row] = row == 0 || draw(one_of) == 0 ? draw(rank_count) : rows.peers[row - 1];
      for (Column& words : rows.words) words[row] = draw(2) == 0 ? -draw(widest) : draw(widest);
      if (form.has_counts && form.table == k) rows.words.back()[row] = draw(4);
      for (std::int64_t n = form.is_listed ? letters.count_of(k, row) : 1; form.firsts == k && n > 0; --n)
        rows.firsts.push_back(draw(static_cast<std::int64_t>(memory_bytes) - 4 * longest_step_bytes));
    }
  }
}

std::vector<RowForm> draw_forms(std::mt19937& random) {
  std::vector<RowForm> out;
  const std::size_t value_bytes[] = {1, 2, 4, 8, 16, 24};
  for (std::size_t k = 0; k < 1 + random() % 3; ++k) {
    const bool has_counts = random() % 3 == 0, is_listed = has_counts && random() % 2 == 0;
    RowForm form{k, k, random() % 3 + has_counts, has_counts, is_listed, value_bytes[random() % 6]};
    form.step_bytes = static_cast<std::int64_t>(form.value_bytes * (1 + 2 * (random() % 2)));
    if (k > 0 && has_counts == out[0].has_counts && is_listed == out[0].is_listed && random() % 2 == 0) {
      form.table = 0, form.columns = out[0].columns;
      if (random() % 2 == 0) form.firsts = 0;
    }
    out.push_back(form);
  }
  return out;
}

}  // namespace

TEST_CASE("rows are read from letters as they were written", "[row-letters]") {
  std::mt19937 random(12);
  Bytes memory(4096);
  for (std::byte& b : memory) b = static_cast<std::byte>(random());
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    const std::int64_t rank_count = 1 + random() % 4;
    RowLetters letters(draw_forms(random), /*have_values=*/true, rank_count);
    for (int run = 0; run < 2; ++run) {  // what an earlier run left does not matter
      draw_rows(random, letters, rank_count, run == 0 ? 1000 : std::int64_t{1} << (20 + random() % 40), memory.size());
      const auto written = letters_of(letters, memory.data(), 99);
      for (std::size_t k = 0; k < letters.forms().size(); ++k) {
        const RowForm& form = letters.forms()[k];
        const DecidedRows& rows = letters.rows(k);
        const DecidedRows& table = letters.rows(form.table);
        std::map<std::int64_t, std::vector<Sent>> expected, read;
        std::size_t first = 0;
        for (std::size_t row = 0; row < rows.rows; ++row) {
          Sent sent;
          for (const Column& words : table.words) sent.words.push_back(words[row]);
          for (std::int64_t n = 0; n < letters.count_of(k, row); ++n) {
            const std::int64_t at =
                form.is_listed ? letters.firsts(k)[first++] : letters.firsts(k)[row] + n * form.step_bytes;
            for (std::size_t b = 0; b < form.value_bytes; ++b)
              sent.bytes.push_back(static_cast<std::uint8_t>(memory[static_cast<std::size_t>(at) + b]));
          }
          expected[letters.peers(k)[row]].push_back(std::move(sent));
        }
        for (const auto& [peer, letter] : written) {
          CHECK(head_of(letter).kind == LetterKind::rows);
          CHECK(head_of(letter).uniform_hash == 99);
          std::vector<RowTable> tables;
          std::size_t at = letters.read(letter, tables);
          std::vector<Sent> all;
          for (std::size_t other = 0; other <= k; ++other) {
            const RowForm& shape = letters.forms()[other];
            ArrivedRows arrived(!shape.has_counts);
            const auto [firsts, counts] = arrived.room(tables[other].rows);
            for (std::size_t row = 0; row < tables[other].rows; ++row) {
              firsts[row] = 0;
              if (counts) counts[row] = tables[other].at(shape.columns - 1, row);
            }
            arrived.add(tables[other].rows);
            arrived.end_segment(0, shape.has_counts);
            const std::byte* from = arrived.last_values(letter, shape.value_bytes, at);
            if (other != k) continue;
            for (std::size_t row = 0; row < tables[k].rows; ++row) {
              Sent& sent = all.emplace_back();
              for (std::size_t c = 0; c < form.columns; ++c) sent.words.push_back(tables[k].at(c, row));
              const std::size_t bytes =
                  static_cast<std::size_t>(form.has_counts ? sent.words.back() : 1) * form.value_bytes;
              for (std::size_t b = 0; b < bytes; ++b) sent.bytes.push_back(static_cast<std::uint8_t>(*from++));
            }
          }
          if (!all.empty()) read[peer] = std::move(all);
        }
        CHECK(read == expected);
      }
    }
  }
}

TEST_CASE("values of rows that are apart take no room in the letter", "[row-letters]") {
  RowForm form{.columns = 1, .has_counts = true, .value_bytes = 8, .step_bytes = 8, .may_be_apart = true};
  RowLetters letters({form}, /*have_values=*/true, 2);
  DecidedRows& rows = letters.rows(0);
  rows.rows = 2;
  rows.peers = {0, 1};
  rows.firsts = {0, 80};
  rows.words[0] = {10, 5};
  letters.count();
  Bytes kept(letters.lay_out(0, /*are_apart=*/true)), sent(letters.lay_out(1));
  CHECK(sent.size() == kept.size() + 5 * 8);
  letters.begin(0, 7, kept.data());
  letters.begin(1, 7, sent.data());
  const Bytes memory(120, std::byte{3});
  letters.fill(0, memory.data());
  std::vector<RowTable> tables;
  CHECK(letters.read(kept, tables) == kept.size());
  CHECK(tables[0].at(0, 0) == 10);
  CHECK(letters.read(sent, tables) == kept.size());
  CHECK(tables[0].at(0, 0) == 5);
  CHECK(sent.back() == std::byte{3});
}

TEST_CASE("a letter of rows that is cut short is damaged", "[row-letters]") {
  std::mt19937 random(13);
  const Bytes memory(4096);
  for (int round = 0; round < 100; ++round) {
    RowLetters letters(draw_forms(random), /*have_values=*/true, 1);
    draw_rows(random, letters, 1, 1000, memory.size());
    auto written = letters_of(letters, memory.data(), 0);
    if (written.empty()) continue;
    const Bytes& whole = written.at(0);
    // The last bytes may be there to fill up the words of a letter without values.
    for (std::size_t bytes = 0; bytes + letter_alignment_bytes <= whole.size(); ++bytes) {
      const Bytes letter(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));  // its end is its own
      CHECK_THROWS_AS(([&] {
                        std::vector<RowTable> tables;
                        std::size_t at = letters.read(letter, tables);
                        for (std::size_t k = 0; k < tables.size(); ++k) {
                          const RowForm& form = letters.forms()[k];
                          ArrivedRows arrived(!form.has_counts);
                          const auto [firsts, counts] = arrived.room(tables[k].rows);
                          for (std::size_t row = 0; counts && row < tables[k].rows; ++row)
                            counts[row] = tables[k].at(form.columns - 1, row);
                          arrived.add(tables[k].rows);
                          arrived.end_segment(0, form.has_counts);
                          arrived.last_values(letter, form.value_bytes, at);
                        }
                      }()),
                      TransportError);
    }
  }
}
