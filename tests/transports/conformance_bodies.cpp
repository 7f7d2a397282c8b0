// Letters with bodies, where exchanges carry them; in some exchanges receivers know their sources.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "tests/transports/ranks.hpp"

using namespace kplan::tests;
using kplan::transport::OutgoingLetter;
using kplan::transport::ReceivedLetter;
using kplan::transport::SparseExchange;

namespace {

using Bytes = std::vector<std::byte>;

/// Memory in regions of random lengths, some empty, with gaps between them.
template <class Byte>
struct Scattered {
  Bytes memory;
  std::vector<std::span<Byte>> regions;

  Scattered(std::mt19937& random, std::size_t bytes) : memory(2 * bytes + 1, std::byte{0xee}) {
    for (std::size_t at = 0, left = bytes; left > 0;) {
      const std::size_t part = std::min<std::size_t>(left, random() % 7 == 0 ? 0 : random() % (bytes / 4 + 2));
      regions.emplace_back(memory.data() + at, part);
      at += part + std::min<std::size_t>(random() % 5, memory.size() - bytes - (at - (bytes - left)) - 1);
      left -= part;
    }
  }
};

/// What goes from one rank to another in an exchange, as all ranks draw it alike.
struct Plan {
  std::size_t front_bytes = 0, body_bytes = 0;
  bool is_sent = false, is_dropped = false;
};

Plan plan_of(unsigned round, int from, int to) {
  std::mt19937 random(round * 1009 + static_cast<unsigned>(from * 31 + to));
  const std::size_t longest[] = {100, 40000, 300000, 3000000};
  Plan out;
  out.is_sent = random() % 4 != 0;
  out.front_bytes = random() % 3 == 0 ? 0 : random() % (random() % 20 == 0 ? 1500000 : 300);
  out.body_bytes = from == to || random() % 4 == 0 ? 0 : 1 + random() % longest[random() % 4];
  out.is_dropped = random() % 6 == 0;
  return out;
}

unsigned seed_of(int from, int to) { return static_cast<unsigned>(from * 100 + to); }

/// One exchange after the other of one rank.
class Writer {
 public:
  explicit Writer(Transport& transport, SparseExchange& exchange) : transport_(transport), exchange_(exchange) {}

  void begin(unsigned round) {
    round_ = round;
    are_placed_ = false;
    fronts_.clear();
    sent_.clear();
    places_.clear();
    std::vector<OutgoingLetter> letters;
    std::mt19937 random(round + static_cast<unsigned>(transport_.rank()));
    for (int to = 0; to < transport_.size(); ++to) {
      const Plan plan = plan_of(round, transport_.rank(), to);
      if (!plan.is_sent) continue;
      Bytes& front = fronts_.emplace_back(plan.front_bytes);
      fill(front.data(), front.size(), seed_of(transport_.rank(), to), round);
      const auto& body = *sent_.emplace_back(std::make_unique<Scattered<const std::byte>>(random, plan.body_bytes));
      Bytes whole(plan.body_bytes);
      fill(whole.data(), whole.size(), seed_of(transport_.rank(), to) + 7, round);
      std::size_t at = 0;
      for (const auto region : body.regions) {
        std::copy_n(whole.data() + at, region.size(), const_cast<std::byte*>(region.data()));
        at += region.size();
      }
      letters.push_back({to, front, body.regions});
    }
    if (round % 3 != 2) return exchange_.begin(letters);
    std::vector<int> sources;
    for (int from = 0; from < transport_.size(); ++from)
      if (plan_of(round, from, transport_.rank()).is_sent) sources.push_back(from);
    exchange_.begin(letters, sources);
  }

  /// Moves it on; whether it has ended.
  bool advance() {
    if (!exchange_.letters_have_come()) return false;
    if (std::exchange(are_placed_, true)) return exchange_.is_complete();
    claim_letters();
    std::mt19937 random(round_ + 17);
    for (const ReceivedLetter& letter : exchange_.received()) {
      const Plan plan = plan_of(round_, letter.from, transport_.rank());
      if (plan.body_bytes == 0) continue;
      auto& place = places_[letter.from];
      place = std::make_unique<Scattered<std::byte>>(random, plan.is_dropped ? 0 : plan.body_bytes);
      exchange_.place_body(letter.from, place->regions);
    }
    return false;
  }

  void finish() {
    wait_for(transport_, "an exchange with bodies", [&] { return advance(); });
    claim_letters();
    for (const auto& [from, place] : places_) {
      if (place->regions.empty()) continue;
      Bytes whole;
      for (const auto region : place->regions) whole.insert(whole.end(), region.begin(), region.end());
      claim_filled(whole.data(), whole.size(), seed_of(from, transport_.rank()) + 7, round_);
      for (const auto region : place->regions) std::ranges::fill(region, std::byte{0xee});
      claim(std::ranges::count(place->memory, std::byte{0xee}) == std::ssize(place->memory),
            "only the regions are written");
    }
    claim(exchange_.waits_for().empty(), "a complete exchange wants nothing");
  }

 private:
  void claim_letters() const {
    std::size_t taken = 0;
    const auto received = exchange_.received();
    for (int from = 0; from < transport_.size(); ++from) {
      const Plan plan = plan_of(round_, from, transport_.rank());
      if (!plan.is_sent) continue;
      claim(taken < received.size() && received[taken].from == from, "letters have come from all, in their order");
      claim(received[taken].bytes.size() == plan.front_bytes, "a letter has its length");
      claim_filled(received[taken++].bytes.data(), plan.front_bytes, seed_of(from, transport_.rank()), round_);
    }
    claim(taken == received.size(), "no letter came that was not sent");
  }

  Transport& transport_;
  SparseExchange& exchange_;
  unsigned round_ = 0;
  bool are_placed_ = false;
  std::vector<Bytes> fronts_;
  std::vector<std::unique_ptr<Scattered<const std::byte>>> sent_;
  std::map<int, std::unique_ptr<Scattered<std::byte>>> places_;
};

/// The body runs on so many ranks, with an exchange that carries bodies.
void on_carriers(int ranks, const std::function<void(Transport&, SparseExchange&)>& body) {
  on_ranks(ranks, [&](Transport& transport) {
    const auto exchange = transport.open_exchange(soon());
    if (exchange->least_body_bytes() > 0) body(transport, *exchange);
    meet(transport);
  });
}

}  // namespace

TEST_CASE("bodies come to their places, from all to all, in pieces or nowhere", "[conformance]") {
  for (const int ranks : rank_counts)
    on_carriers(ranks, [](Transport& transport, SparseExchange& exchange) {
      Writer own(transport, exchange);
      for (unsigned round = 0; round < 40; ++round) {
        own.begin(round);
        own.finish();
      }
    });
}

TEST_CASE("a body that has no place yet does not hold up ranks that wait for something else", "[conformance]") {
  for (const int ranks : {2, 3, 5})
    on_carriers(ranks, [](Transport& transport, SparseExchange& exchange) {
      Writer own(transport, exchange);
      for (unsigned round = 0; round < 20; ++round) {
        own.begin(round);
        // The others end the exchange before they come.
        const bool is_early = transport.rank() == static_cast<int>(round) % transport.size();
        if (is_early) meet(transport);
        own.finish();
        if (!is_early) meet(transport);
      }
    });
}

TEST_CASE("bodies of several exchanges in flight may be waited for in any order", "[conformance]") {
  for (const int ranks : {2, 3, 5})
    on_carriers(ranks, [](Transport& transport, SparseExchange& exchange) {
      const auto other = transport.open_exchange(soon());
      Writer one(transport, exchange), two(transport, *other);
      for (unsigned round = 0; round < 20; ++round) {
        one.begin(2 * round);
        two.begin(2 * round + 1);
        const bool is_first = transport.rank() % 2 == 0;
        (is_first ? one : two).finish();
        (is_first ? two : one).finish();
      }
    });
}

TEST_CASE("an exchange that is given up with bodies under way does not disturb others", "[conformance]") {
  // What bodies lie in must stay. Ranks that have bodies are processes.
  static std::vector<std::unique_ptr<Writer>> given_up;
  for (const int ranks : {2, 3, 5})
    on_carriers(ranks, [](Transport& transport, SparseExchange& exchange) {
      Writer own(transport, exchange);
      for (unsigned round = 0; round < 8; ++round) {
        const auto other = transport.open_exchange(soon());
        Writer& writer = *given_up.emplace_back(std::make_unique<Writer>(transport, *other));
        writer.begin(round);
        for (unsigned k = 0; k < 5 * (round % 4); ++k) (void)writer.advance();
        own.begin(round + 1);
        own.finish();
        meet(transport);
      }
    });
}
