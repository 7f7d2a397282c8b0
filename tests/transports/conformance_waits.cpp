// Whom every transport names when a sparse exchange does not end.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/transports/letters.hpp"

using namespace kplan::tests;

namespace {

/// Whom each rank waits for after some rounds of moving on, in rank order. Collective.
std::vector<std::string> all_waits(Transport& transport, SparseExchange& exchange) {
  for (unsigned idle = 0; idle < 200; ++idle) {
    (void)exchange.is_complete();
    transport.progress();
    transport.pause(idle);
  }
  std::string named;
  for (const int rank : exchange.waits_for()) named += static_cast<char>(rank);
  return transport.allgather(named, soon());
}

/// Whether who follows the names from `rank` comes to `wanted`.
bool leads_to(const std::vector<std::string>& waits, int rank, int wanted) {
  std::vector<int> reached{rank};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const char named : waits[static_cast<std::size_t>(reached[i])]) {
      if (std::find(reached.begin(), reached.end(), named) == reached.end()) reached.push_back(named);
    }
  }
  return std::find(reached.begin(), reached.end(), wanted) != reached.end();
}

/// Until every rank but `absent` leads to it.
void wait_until_named(Transport& transport, SparseExchange& exchange, int absent) {
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(20);
  for (bool is_over = false; !is_over;) {
    const std::vector<std::string> waits = all_waits(transport, exchange);
    is_over = true;
    for (int rank = 0; rank < transport.size(); ++rank) {
      if (rank != absent) is_over = is_over && leads_to(waits, rank, absent);
    }
    const bool is_late = Clock::now() > deadline;
    for (const std::string& other : transport.allgather(is_late ? "late" : "", soon()))
      claim(is_over || other.empty(), "all waiting ranks lead to rank " + std::to_string(absent));
  }
}

}  // namespace

TEST_CASE("ranks that wait in an exchange lead to the one that has not come", "[conformance]") {
  for (const int ranks : {2, 3, 5}) {
    for (int absent = 0; absent < ranks; ++absent) {
      on_ranks(ranks, [=](Transport& transport) {
        Correspondent own(transport);
        Mail mail{1, {}};  // sent by one neighbour of the absent rank to the other
        if (ranks > 2) mail.letters.push_back({(absent + 1) % ranks, (absent + ranks - 1) % ranks, 9});
        if (transport.rank() != absent) own.begin(mail);
        wait_until_named(transport, own.exchange(), absent);
        if (transport.rank() == absent) own.begin(mail);
        own.finish();
      });
    }
  }
}

TEST_CASE("a rank whose letter to an absent one is not taken leads to it", "[conformance]") {
  for (const int ranks : {2, 3, 5}) {
    on_ranks(ranks, [=](Transport& transport) {
      Correspondent own(transport);
      Mail mail{2, {}};
      for (int from = 1; from < ranks; ++from) mail.letters.push_back({from, 0, 100000});
      if (transport.rank() != 0) own.begin(mail);
      wait_until_named(transport, own.exchange(), 0);
      if (transport.rank() == 0) own.begin(mail);
      own.finish();
    });
  }
}

TEST_CASE("a receiver names exactly those of its known sources that have not sent", "[conformance]") {
  for (const int ranks : {2, 3, 5}) {
    on_ranks(ranks, [=](Transport& transport) {
      Correspondent own(transport);
      Mail mail{3, {}};
      for (int from = 0; from < ranks; ++from) mail.letters.push_back({from, 0, 40});
      const bool is_late = transport.rank() % 2 != 0;
      if (!is_late) own.begin(mail, Sources::known);
      if (transport.rank() == 0) {
        std::vector<int> late;
        for (int rank = 1; rank < ranks; rank += 2) late.push_back(rank);
        wait_for(transport, "all but the late", [&] {
          claim(!own.exchange().is_complete(), "it is not complete");
          return own.exchange().waits_for() == late;
        });
      }
      meet(transport);
      if (is_late) own.begin(mail, Sources::known);
      own.finish();
    });
  }
}
