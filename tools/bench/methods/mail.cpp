// How it works: one field that is no list is sent and received in place.
#include "tools/bench/methods/mail.hpp"

namespace kplan::bench {

Mail::Mail(const Team& t, std::int64_t row_length, std::size_t fields, std::int64_t outbox_length, std::int64_t listed)
    : team(t),
      longest(row_length),
      received(4 * static_cast<std::size_t>(t.size)),
      elements(static_cast<std::size_t>(listed)) {
  for (std::size_t f = 0; f < fields; ++f) {
    outboxes.emplace_back(8 * static_cast<std::size_t>(outbox_length));
    inboxes.emplace_back(8 * static_cast<std::size_t>(longest * team.size));
  }
}

MailMessages::MailMessages(std::shared_ptr<Mail> mail)
    : mail_(std::move(mail)), fields_(static_cast<int>(mail_->fields())) {
  const auto in_place = [&](bool is_in_one_piece, AlignedMemory& other, AlignedMemory& box, std::size_t bytes) {
    if (!is_in_one_piece) other = AlignedMemory(bytes);
    return (is_in_one_piece ? box : other).as<double>().data();
  };
  std::size_t longest = 0;
  bool is_listed = false;
  for (const Letters& l : mail_->exchanges) {
    if (!l.targets.empty()) longest = std::max(longest, static_cast<std::size_t>(l.firsts.back() + l.counts.back()));
    is_listed = is_listed || !l.elements.empty();
  }
  const auto all_fields = 8 * static_cast<std::size_t>(fields_);
  outgoing_ = in_place(fields_ == 1 && !is_listed, packed_, mail_->outboxes[0], all_fields * longest);
  arriving_ = in_place(fields_ == 1, came_, mail_->inboxes[0],
                       all_fields * static_cast<std::size_t>(mail_->longest * mail_->team.size));
}

void MailMessages::pack(const Letters& l, std::size_t k) {
  if (!packed_.data()) return;
  double* __restrict to = outgoing_ + first(l, k);
  const std::int32_t count = l.counts[k];
  for (const AlignedMemory& box : mail_->outboxes) {
    const double* from = box.as<double>().data();
    if (l.elements.empty()) {
      std::copy_n(from + l.firsts[k], count, to);
    } else {
      const std::int32_t* elements = mail_->elements.data() + l.firsts[k];
      for (std::int32_t j = 0; j < count; ++j) to[j] = from[elements[j]];
    }
    to += count;
  }
}

void MailMessages::unpack(int sender, int length) {
  const int count = length / fields_;
  mail_->received.as<std::int32_t>()[static_cast<std::size_t>(sender)] = count;
  if (!came_.data()) return;
  const double* from = arriving_ + place(sender);
  for (std::size_t f = 0; f < mail_->fields(); ++f, from += count) std::copy_n(from, count, mail_->row(f, sender));
}

}  // namespace kplan::bench
