#include "tests/transports/letters.hpp"

#include <algorithm>
#include <thread>

namespace kplan::tests {

using transport::OutgoingLetter;
using transport::ReceivedLetter;

Mail random_mail(int ranks, unsigned seed, std::size_t most_bytes, int most_each) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random()) % bound; };
  Mail mail;
  mail.seed = seed;
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (below(3) != 0) continue;
      const auto count = 1 + below(static_cast<std::size_t>(most_each));
      for (std::size_t i = 0; i < count; ++i)
        mail.letters.push_back(
            {from, to, below(2) == 0 ? below(std::min<std::size_t>(most_bytes, 20) + 1) : below(most_bytes + 1)});
    }
  }
  std::shuffle(mail.letters.begin(), mail.letters.end(), random);
  return mail;
}

void dawdle(std::minstd_rand& random, unsigned most_microseconds) {
  const auto microseconds = random() % (2 * most_microseconds);
  if (microseconds < most_microseconds) std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

void Correspondent::begin(Mail mail, Sources sources) {
  mail_ = std::move(mail);
  own_bytes_.clear();
  std::vector<OutgoingLetter> outgoing;
  std::vector<int> from;
  for (std::size_t i = 0; i < mail_.letters.size(); ++i) {
    const PlannedLetter& letter = mail_.letters[i];
    if (letter.to == transport_.rank()) from.push_back(letter.from);
    if (letter.from != transport_.rank()) continue;
    own_bytes_.emplace_back(letter.bytes);
    fill(own_bytes_.back().data(), letter.bytes, mail_.seed, i);
    outgoing.push_back({letter.to, own_bytes_.back()});
  }
  std::sort(from.begin(), from.end());
  if (sources == Sources::known) {
    exchange_->begin(outgoing, from);
  } else {
    exchange_->begin(outgoing);
  }
}

void Correspondent::finish() {
  wait_for(transport_, "an exchange", [&] { return exchange_->is_complete(); });
  for (std::vector<std::byte>& bytes : own_bytes_) std::fill(bytes.begin(), bytes.end(), std::byte{0xee});
  claim_received();
  claim(exchange_->waits_for().empty(), "a complete exchange waits for nobody");
}

void Correspondent::claim_received() const {
  const std::span<const ReceivedLetter> received = exchange_->received();
  std::size_t taken = 0;
  for (int from = 0; from < transport_.size(); ++from) {
    for (std::size_t i = 0; i < mail_.letters.size(); ++i) {
      const PlannedLetter& letter = mail_.letters[i];
      if (letter.from != from || letter.to != transport_.rank()) continue;
      claim(taken < received.size(), "all letters have come");
      const ReceivedLetter& came = received[taken++];
      claim(came.from == from, "letters are in the order of their senders");
      claim(came.bytes.size() == letter.bytes, "a letter has its length");
      claim(reinterpret_cast<std::uintptr_t>(came.bytes.data()) % 16 == 0, "a letter is aligned");
      claim_filled(came.bytes.data(), letter.bytes, mail_.seed, i);
    }
  }
  claim(taken == received.size(), "no letter came that was not sent");
}

}  // namespace kplan::tests
