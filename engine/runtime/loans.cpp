#include "engine/runtime/loans.hpp"

#include <algorithm>
#include <cstring>

#include "engine/analysis/word_stream.hpp"
#include "engine/lower/joined_ends.hpp"

namespace kplan {

namespace {

constexpr std::int64_t line_bytes = 64;

/// Calls f(line) for the cache lines that the track's elements lie on, one after the other, those of the first
/// `most_walked` elements or a few more; buffers are taken to begin on a line. Returns how many elements these were.
template <class F>
std::int64_t walk_lines(const Piece& piece, const Track& track, std::int64_t element_bytes, std::int64_t most_walked,
                        const F& f) {
  std::int64_t walked = 0, last = -1;
  walk_runs(piece, track, element_bytes, [&](std::int64_t position, std::int64_t run) {
    const std::int64_t end = (position + run * element_bytes - 1) / line_bytes;
    for (std::int64_t line = position / line_bytes; line <= end; ++line)
      if (line != last) f(last = line);
    return (walked += run) < most_walked;
  });
  return walked;
}

}  // namespace

WrittenLines::WrittenLines(const BoundPlan& bound, const Schedule& schedule, const std::vector<int>& phase) {
  for (const int number : phase) {
    const StatementSchedule& s = schedule.statements[static_cast<std::size_t>(number)];
    const Statement& statement = bound.model->statements[static_cast<std::size_t>(s.statement)];
    for (const auto* messages : {&s.receives, &s.local_receive})
      for (const Message& m : *messages)
        for (const MessagePart& part : m.parts) {
          const Reduction& r = statement.reductions[static_cast<std::size_t>(part.reduction)];
          auto& lines = lines_[r.place->id];
          walk_lines(part.piece, part.piece.tracks[0], static_cast<std::int64_t>(r.place_type.size_bytes), INT64_MAX,
                     [&](std::int64_t line) {
                       if (static_cast<std::size_t>(line) >= lines.size())
                         lines.resize(2 * static_cast<std::size_t>(line) + 1);
                       lines[static_cast<std::size_t>(line)] = true;
                     });
        }
  }
}

bool WrittenLines::contains(int buffer, std::int64_t line) const {
  const auto known = lines_.find(buffer);
  return known != lines_.end() && static_cast<std::size_t>(line) < known->second.size() &&
         known->second[static_cast<std::size_t>(line)];
}

BetterLent better_lent(const Statement& statement, const StatementSchedule& s, const Message& m,
                       const WrittenLines& written, const LendingLimits& limits) {
  if (limits.most_spread == 0) return BetterLent::always;
  // Of values that are written anew in every run: what was measured with such loops.
  constexpr double least_dense_bytes = 1310720, most_dense_spread = 1.5, least_spread_bytes = 4 << 20;
  // A line that both ends want costs what packing and unpacking so many bytes do.
  constexpr double bytes_for_a_contested_line = 700;
  constexpr std::int64_t most_walked = std::int64_t{1} << 16;
  double fetched = 0, contested = 0;
  for (const MessagePart& part : m.parts) {
    const Reduction& r = statement.reductions[static_cast<std::size_t>(part.reduction)];
    const int buffer = s.values[static_cast<std::size_t>(part.reduction)].value->id;
    std::int64_t lines = 0, of_both = 0;
    const std::int64_t walked =
        walk_lines(part.piece, part.piece.tracks[0], static_cast<std::int64_t>(r.value_type.size_bytes), most_walked,
                   [&](std::int64_t line) {
                     ++lines;
                     if (written.contains(buffer, line)) ++of_both;
                   });
    const double scale =
        static_cast<double>(part.piece.element_count()) / static_cast<double>(std::max<std::int64_t>(walked, 1));
    fetched += scale * static_cast<double>(lines * line_bytes);
    contested += scale * static_cast<double>(of_both);
  }
  const auto bytes = static_cast<double>(m.payload_bytes);
  if (fetched > static_cast<double>(limits.most_spread) * bytes || contested * bytes_for_a_contested_line > bytes)
    return BetterLent::never;
  const bool is_dense = bytes >= least_dense_bytes && fetched <= most_dense_spread * bytes;
  return is_dense || fetched >= least_spread_bytes ? BetterLent::always : BetterLent::when_seldom_written;
}

std::unique_ptr<OutgoingLoan> OutgoingLoan::of(const Statement& statement, const StatementSchedule& s, const Message& m,
                                               const LendingLimits& limits) {
  if (limits.least_bytes == 0 || static_cast<std::size_t>(m.bytes) < limits.least_bytes || s.reads_what_it_writes ||
      std::ranges::any_of(statement.reductions, &Reduction::is_native))
    return nullptr;
  auto out = std::make_unique<OutgoingLoan>();
  out->limits_ = limits;
  for (const MessagePart& part : m.parts) {
    const ValueForm& form = s.values[static_cast<std::size_t>(part.reduction)];
    if (form.value->kind != ExprKind::element) return nullptr;
    out->buffers_.push_back(form.value->id);
  }
  // One region a buffer.
  std::ranges::sort(out->buffers_);
  out->buffers_.erase(std::ranges::unique(out->buffers_).begin(), out->buffers_.end());
  out->regions_.resize(out->buffers_.size() + 1);
  return out;
}

bool OutgoingLoan::is_within_reach(const std::vector<BoundMemory>& memory, const transport::Transport& transport) {
  const auto lies = [&](int b) -> const BoundMemory& { return memory[static_cast<std::size_t>(b)]; };
  is_changing_ = std::ranges::any_of(buffers_, [&](int b) { return !lies(b).is_seldom_written; });
  return std::ranges::all_of(buffers_, [&](int b) { return transport.can_lend(lies(b).base); });
}

bool OutgoingLoan::lend(transport::Channel& channel, std::uint64_t seq, const std::vector<BoundMemory>& memory) {
  if (is_changing_ && channel.is_far(seq)) return false;
  for (std::size_t k = 0; k < buffers_.size(); ++k) regions_[k] = memory[static_cast<std::size_t>(buffers_[k])].base;
  regions_.back() = description_;
  return channel.lend(seq, regions_);
}

std::shared_ptr<std::byte> describe(const std::vector<std::pair<OutgoingLoan*, const Message*>>& loans,
                                    transport::Transport& transport) {
  Unfilled<std::byte> bytes;
  std::vector<std::size_t> begins;
  for (const auto& [loan, message] : loans) {
    Unfilled<std::byte> elements;
    WordWriter out(elements);
    out.word(static_cast<std::int64_t>(message->parts.size()));
    for (const MessagePart& part : message->parts) {
      out.word(part.reduction);
      out.piece(part.piece);
    }
    begins.push_back(bytes.size());
    WordWriter(bytes).word(static_cast<std::int64_t>(elements.size()));
    bytes.insert(bytes.end(), elements.begin(), elements.end());
  }
  auto memory = transport.allocate(bytes.size());
  std::ranges::copy(bytes, memory.get());
  for (std::size_t k = 0; k < loans.size(); ++k) loans[k].first->set_description(memory.get() + begins[k]);
  return memory;
}

IncomingLoan::IncomingLoan(const BoundPlan& bound, const StatementSchedule& s, const Message& m,
                           const std::byte* description, jit::Wait wait)
    : description_(description) {
  try {
    make_calls(bound, s, m, wait);
  } catch (const std::exception&) {
    is_usable_ = false;  // the message comes packed, then
  }
}

void IncomingLoan::make_calls(const BoundPlan& bound, const StatementSchedule& s, const Message& m, jit::Wait wait) {
  const Statement& statement = bound.model->statements[static_cast<std::size_t>(s.statement)];
  std::size_t bytes = 0;
  std::memcpy(&bytes, description_, sizeof bytes);
  std::span<const std::byte> rest(description_ + sizeof bytes, bytes);
  WordReader in(rest);
  std::vector<MessagePart> from(in.count());
  std::vector<int> buffers;
  for (MessagePart& part : from) {
    part.reduction = static_cast<int>(in.word());
    part.piece = in.piece();
    buffers.push_back(s.values[static_cast<std::size_t>(part.reduction)].value->id);
  }
  std::ranges::sort(buffers);
  buffers.erase(std::ranges::unique(buffers).begin(), buffers.end());

  const auto ends = join_ends(statement, std::move(from), m.parts);
  if (!ends) return;
  SpecTable table;
  Lowering lowering(bound, s, table, Literals::shapes);
  std::vector<KernelCall> calls;
  for (const auto& [source, place] : *ends) {
    lowering.move(source, place, calls);
    const int buffer = s.values[static_cast<std::size_t>(source.reduction)].value->id;
    regions_.resize(calls.size(), static_cast<std::size_t>(std::ranges::find(buffers, buffer) - buffers.begin()));
  }
  // The source is the other rank's memory, whose address comes with each message.
  for (KernelCall& call : calls) call.streams.at(1).kind = StreamKind::message;
  const std::vector<jit::Kernel> kernels = jit::Compiler::instance().compile(table.specs(), wait);
  for (KernelCall& call : calls) {
    const auto spec = static_cast<std::size_t>(call.spec);
    if (call.spec < 0) calls_.emplace_back(std::move(call), jit::Kernel(), nullptr);
    else calls_.emplace_back(std::move(call), kernels[spec], &table.specs()[spec]);
  }
  set_varying(bound.state.parameters);
  is_usable_ = true;
}

void IncomingLoan::set_varying(const std::vector<ScalarValue>& parameters) {
  for (ReadyCall& call : calls_) call.set_varying(parameters);
}

const ReadyCall* IncomingLoan::apply(std::span<const std::byte* const> regions,
                                     const std::vector<BoundMemory>& memory) {
  const ReadyCall* faulty = nullptr;
  for (std::size_t k = 0; k < calls_.size(); ++k)
    if (calls_[k].unpack(memory, regions[regions_[k]]) != 0) faulty = &calls_[k];
  return faulty;
}

}  // namespace kplan
