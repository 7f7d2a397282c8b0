// How it works: row_finder.hpp finds rows, and row_letters.hpp takes them into letters. Places are all worked out, and
// those assigned found to be distinct, before the first is written. What is wrong is not told here: the general way,
// taken once more from the start, finds the same and says where.
#include "engine/runtime/row_statement.hpp"

#include <algorithm>
#include <limits>

#include "engine/analysis/pattern_finder.hpp"
#include "engine/runtime/row_choice.hpp"

namespace kplan {
namespace {

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
  if (!goes_by_rows(*bound.model, s) && !goes_by_rows_when_new(*bound.model, s)) return nullptr;
  return std::unique_ptr<RowStatement>(new RowStatement(bound, number, std::move(s), wait));
}

RowStatement::RowStatement(const BoundPlan& bound, std::size_t number, Statement s, jit::Wait wait)
    : bound_(bound), s_(std::move(s)), finder_(bound_, s_, wait) {
  std::vector<RowForm> forms;
  for (const PartRows& rows : finder_.parts()) {
    Part& part = parts_.emplace_back(Part{&rows, {}, ArrivedRows(rows.are_far_single), {}});
    if (rows.is_update()) part.update = make_listed_update(bound_, number, static_cast<int>(forms.size()), wait);
    forms.push_back(rows.form);
  }
  letters_ = {std::move(forms), !s_.is_pull, bound_.state.size};
}

[[gnu::hot]] void RowStatement::send(const RankState& state, const std::vector<BoundMemory>& memory, const Outbox& to) {
  std::ranges::copy(state.parameters, bound_.state.parameters.begin());
  std::ranges::copy(state.contents, bound_.state.contents.begin());
  for (Part& part : parts_)
    if (part.update) part.update->set_varying(state.parameters);
  finder_.find(letters_);
  letters_.count();
  const std::span<const std::int64_t> sharers = letters_.sharers();
  if (bodies_.size() < sharers.size()) bodies_.resize(sharers.size());
  own_ = {};
  bool has_bodies = false;
  for (std::size_t k = 0; k < sharers.size(); ++k) {
    const bool is_own = sharers[k] == bound_.state.rank;
    const auto rank = static_cast<int>(bound_.world_rank_of(sharers[k]));
    std::size_t bytes = letters_.lay_out(k, /*are_apart=*/is_own);
    std::byte* letter = nullptr;
    bodies_[k].clear();
    if (is_own) {
      own_memory_.resize(bytes);
      letter = own_memory_.data();
      own_ = own_memory_;
    } else if (!(letter = to.letters.add_in_room(to.exchange, rank, bytes))) {
      if (is_long(k, to.exchange.least_body_bytes())) [[unlikely]] {
        bodies_[k].emplace_back();  // says that it has one
        has_bodies = true;
        bytes = letters_.lay_out(k, /*are_apart=*/true);
      }
      letter = to.letters.add(to.exchange, rank, bytes);
    }
    letters_.begin(k, to.uniform_hash, letter, /*has_body=*/!bodies_[k].empty());
  }
  for (std::size_t k = 0; k < parts_.size(); ++k) letters_.fill(k, parts_[k].rows->near.base(memory));
  if (has_bodies) [[unlikely]]
    add_bodies(memory, to.letters.list());
}

/// Whether the values of a share that can be apart are worth a body: many copies of few bytes are better made by
/// fill(). `least_bytes` 0: none are.
bool RowStatement::is_long(std::size_t share, std::size_t least_bytes) const {
  std::size_t rows = 0, bytes = 0;
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    if (!parts_[k].rows->form.may_be_apart) continue;
    const RowLetters::Share part = *letters_.share_of(k, letters_.sharers()[share]);
    rows += part.rows;
    bytes += part.elements * parts_[k].rows->form.value_bytes;
  }
  return least_bytes > 0 && bytes >= least_bytes && bytes / rows >= least_bytes / slices_of_least;
}

/// The slices that letters have left out.
void RowStatement::add_bodies(const std::vector<BoundMemory>& memory, std::span<transport::OutgoingLetter> letters) {
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    const Part& part = parts_[k];
    if (!part.rows->form.may_be_apart) continue;
    const Column &peers = letters_.peers(k), &firsts = letters_.firsts(k);
    for (std::size_t row = 0; row < letters_.rows(k).rows; ++row)
      if (auto& body = bodies_[letters_.number_of(peers[row])]; !body.empty())
        body.emplace_back(part.rows->near.base(memory) + firsts[row],
                          static_cast<std::size_t>(letters_.count_of(k, row)) * part.rows->form.value_bytes);
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
  for (Part& part : parts_) part.come.clear(part.rows->far.steps.step), part.values.clear();
  for (const Came& came : letters) {
    std::size_t at = letters_.read(came.letter, tables_);
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      Part& part = parts_[k];
      if (part.rows->far_firsts == k) {
        const std::size_t first_row = part.come.rows();
        if (!finder_.locate(k, tables_[k], part.come)) return false;
        part.come.end_segment(first_row, part.rows->form.has_counts);
      }
      const bool has_values = !s_.is_pull && !is_apart(part, came);
      part.values.push_back(has_values ? told_rows(part).last_values(came.letter, part.rows->form.value_bytes, at)
                                       : nullptr);
    }
  }
  places_.resize(std::max(places_.size(), letters.size()));
  const auto far_firsts = [](const Part& p) { return p.rows->far_firsts; };
  return s_.is_pull || (can_be_listed() && are_distinct_where_assigned(far_firsts, [&](const Part& p) {
                          return distinct_.are_distinct(p.come.firsts(), p.come.counts(), p.rows->far.steps);
                        }));
}

/// Of the first of all parts that are alike, for those of which one is assigned.
template <class Leader, class F>
bool RowStatement::are_distinct_where_assigned(const Leader& first_alike, const F& are_distinct) const {
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    const auto is_assigned = [&](const Part& p) { return p.rows->reduction->is_assign && first_alike(p) == k; };
    if (std::ranges::any_of(parts_, is_assigned) && !are_distinct(parts_[k])) return false;
  }
  return true;
}

std::span<const std::span<std::byte>> RowStatement::places(std::size_t n, const std::vector<BoundMemory>& memory) {
  places_[n].clear();
  for (const Part& part : parts_)
    if (part.rows->form.may_be_apart)
      told_rows(part).add_places(memory[static_cast<std::size_t>(part.rows->reduction->place->id)].base,
                                 told_rows(part).segments()[n], part.rows->form.value_bytes, places_[n]);
  return places_[n];
}

/// Whether entries of lists can say where the elements are that are not just copied.
[[gnu::hot]] bool RowStatement::can_be_listed() const {
  return std::ranges::all_of(parts_, [&](const Part& p) {
    const Layout& layout = bound_.state.layouts[static_cast<std::size_t>(p.rows->reduction->place->id)];
    return !p.update || layout.extent <= std::numeric_limits<jit::ListEntry>::max();
  });
}

[[gnu::hot]] std::size_t RowStatement::answer_bytes(std::size_t n) const {
  std::size_t at = 0;
  for (const Part& part : parts_)
    if (const std::size_t elements = told_rows(part).segments()[n].elements; elements > 0)
      at = aligned_in_letter(at) + elements * part.rows->form.value_bytes;
  return at;
}

[[gnu::hot]] void RowStatement::answer(std::size_t n, const std::vector<BoundMemory>& memory, std::byte* to) const {
  std::byte* at = to;
  for (const Part& part : parts_) {
    const ArrivedRows::Segment& segment = told_rows(part).segments()[n];
    if (segment.elements == 0) continue;
    at = to + aligned_in_letter(static_cast<std::size_t>(at - to));
    at = told_rows(part).copy_from(part.rows->far.base(memory), segment, part.rows->form.value_bytes, at);
  }
}

[[gnu::hot]] bool RowStatement::take_answers(std::vector<Came>& answers) {
  std::ranges::sort(answers, {}, &Came::from);
  for (Part& part : parts_) part.come.clear(part.rows->near.steps.step), part.values.clear();
  for (const Came& came : answers) {
    std::size_t at = 0;
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      Part& part = parts_[k];
      const auto asked = letters_.share_of(k, came.from);
      if (!asked) fail_damaged_letter();
      if (part.rows->form.firsts == k)
        part.come.add_segment(part.rows->form.is_listed ? asked->elements : asked->rows, asked->elements);
      part.values.push_back(target_rows(part).last_values(came.letter, part.rows->form.value_bytes, at));
    }
  }
  if (answers.size() != letters_.sharers().size()) fail_damaged_letter();
  starts_.resize(answers.size());
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    Part& part = parts_[k];
    if (part.rows->form.firsts != k) continue;
    for (std::size_t n = 0; n < answers.size(); ++n)
      starts_[letters_.number_of(answers[n].from)] = part.come.segments()[n].first_row;
    const auto [firsts, counts] = part.come.all_rows();
    letters_.copy_by_share(k, starts_, firsts, counts);
  }
  // Places in the order of environments more often ascend than sender by sender.
  const auto near_firsts = [](const Part& p) { return p.rows->form.firsts; };
  return can_be_listed() && are_distinct_where_assigned(near_firsts, [&](const Part& p) {
           const bool has_counts = p.rows->form.has_counts && !p.rows->form.is_listed;
           return distinct_.are_distinct(std::span(letters_.rows(p.rows->form.firsts).firsts).first(p.come.rows()),
                                         has_counts ? letters_.rows(p.rows->form.table).words.back().data() : nullptr,
                                         p.rows->near.steps);
         });
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
                            : static_cast<std::int64_t>(came.letter.size() / part.rows->form.value_bytes);
      Piece piece = finder_.told_environments(k, table, most);
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
  std::byte* const to = memory[static_cast<std::size_t>(part.rows->reduction->place->id)].base;
  for (std::size_t row = 0, n = 0; n < places.size(); ++row)
    if (peers[row] == bound_.state.rank)
      gather_row(to + places[n++], part.rows->near.base(memory), firsts[row], part.rows->form.step_bytes,
                 static_cast<std::size_t>(letters_.count_of(k, row)), part.rows->form.value_bytes);
}

[[gnu::hot]] const ReadyCall* RowStatement::apply(const std::vector<BoundMemory>& memory) {
  const ReadyCall* faulty = nullptr;
  for (Part& part : parts_) {
    if (!part.update) {
      target_rows(part).copy_to(memory[static_cast<std::size_t>(part.rows->reduction->place->id)].base, part.values,
                                part.rows->form.value_bytes);
      if (part.rows->form.may_be_apart && has_own()) copy_own(part, memory);
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
