// What every transport does with exchanges that follow each other, with exchanges in flight together, and with objects
// that come and go. Run on each backend by its own on_ranks.
#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>

#include "tests/transports/letters.hpp"

using namespace kplan::tests;
using kplan::transport::Use;

TEST_CASE("exchanges that follow each other do not mix though some ranks run ahead", "[conformance]") {
  for (const int ranks : rank_counts) {
    on_ranks(ranks, [=](Transport& transport) {
      Correspondent own(transport);
      std::minstd_rand random(static_cast<unsigned>(transport.rank()) + 1);
      for (unsigned seed = 0; seed < 400; ++seed) {
        // Each rank in turn is late, so that the others are in the next exchange when it is in this one.
        if (seed / 20 % static_cast<unsigned>(ranks) == static_cast<unsigned>(transport.rank())) dawdle(random, 200);
        own.begin(random_mail(ranks, seed, 200, 3));
        own.finish();
      }
    });
  }
}

TEST_CASE("exchanges of both forms may follow each other in any order", "[conformance]") {
  for (const int ranks : rank_counts) {
    on_ranks(ranks, [=](Transport& transport) {
      Correspondent own(transport);
      std::minstd_rand random(static_cast<unsigned>(transport.rank()) + 1);
      std::mt19937 form(5);  // the same on every rank
      for (unsigned seed = 0; seed < 400; ++seed) {
        if (seed / 20 % static_cast<unsigned>(ranks) == static_cast<unsigned>(transport.rank())) dawdle(random, 200);
        const bool is_known = form() % 2 == 0;
        own.begin(random_mail(ranks, seed, 200, is_known ? 1 : 3), is_known ? Sources::known : Sources::unknown);
        own.finish();
      }
    });
  }
}

TEST_CASE("a sender may be hundreds of exchanges ahead of receivers that know it", "[conformance]") {
  for (const int ranks : {2, 3, 5}) {
    on_ranks(ranks, [=](Transport& transport) {
      Correspondent own(transport);
      const auto mail_of = [&](unsigned round) {
        Mail mail{round, {}};
        for (int to = 1; to < ranks; ++to) mail.letters.push_back({0, to, round % 90});
        return mail;
      };
      const auto rounds = [&] {
        for (unsigned round = 0; round < 500; ++round) {
          own.begin(mail_of(round), Sources::known);
          own.finish();
        }
      };
      if (transport.rank() == 0) rounds();
      meet(transport);  // rank 0 has ended all of them before the others begin the first
      if (transport.rank() != 0) rounds();
      own.begin(random_mail(ranks, 1, 500, 3));
      own.finish();
    });
  }
}

TEST_CASE("letters to receivers that know of them come also when their sender has closed the object", "[conformance]") {
  for (const int ranks : {2, 3, 5}) {
    on_ranks(ranks, [=](Transport& transport) {
      auto own = std::make_unique<Correspondent>(transport);
      const auto rounds = [&] {
        for (unsigned round = 0; round < 20; ++round) {
          Mail mail{round, {}};
          for (int to = 1; to < ranks; ++to) mail.letters.push_back({0, to, round * 50});
          own->begin(mail, Sources::known);
          own->finish();
        }
        own.reset();
      };
      if (transport.rank() == 0) rounds();
      meet(transport);
      if (transport.rank() != 0) rounds();
      // Rank 0 may have left by now.
    });
  }
}

TEST_CASE("a rank that has no part in an exchange of known sources may leave it out", "[conformance]") {
  for (const int ranks : {3, 5}) {
    on_ranks(ranks, [=](Transport& transport) {
      Correspondent own(transport);
      for (unsigned round = 0; round < 60; ++round) {
        const int from = static_cast<int>(round) % ranks;
        const int to = (from + 1) % ranks;
        if (transport.rank() == from || transport.rank() == to) {
          own.begin({round, {{from, to, 100}}}, Sources::known);
          own.finish();
        }
        if (round % 7 != 0) continue;
        own.begin(random_mail(ranks, round, 100, 2));
        own.finish();
      }
    });
  }
}

TEST_CASE("objects in flight together may be waited for in any order on any rank", "[conformance]") {
  for (const int ranks : rank_counts) {
    on_ranks(ranks, [=](Transport& transport) {
      std::vector<std::unique_ptr<Correspondent>> objects;
      for (int i = 0; i < 6; ++i) objects.push_back(std::make_unique<Correspondent>(transport));
      std::mt19937 random(static_cast<unsigned>(transport.rank()) + 1);
      for (unsigned round = 0; round < 40; ++round) {
        std::vector<unsigned> order{0, 1, 2, 3, 4, 5};
        std::shuffle(order.begin(), order.end(), random);
        for (const unsigned i : order) {
          const bool is_known = (round + i) % 3 == 0;
          objects[i]->begin(random_mail(ranks, round * 6 + i, round % 8 == 0 ? 200000 : 300, is_known ? 1 : 3),
                            is_known ? Sources::known : Sources::unknown);
        }
        std::shuffle(order.begin(), order.end(), random);
        for (const unsigned i : order) objects[i]->finish();
        for (const unsigned i : order) objects[i]->claim_received();  // still there after all the others
      }
    });
  }
}

TEST_CASE("an exchange in flight does not hold up ranks that are in a collective call", "[conformance]") {
  for (const int ranks : {2, 3, 5}) {
    on_ranks(ranks, [=](Transport& transport) {
      Correspondent own(transport);
      for (unsigned round = 0; round < 20; ++round) {
        own.begin(random_mail(ranks, round, 200000, 2));
        if (transport.rank() % 2 == 0) meet(transport);
        own.finish();
        if (transport.rank() % 2 != 0) meet(transport);
      }
    });
  }
}

TEST_CASE("an exchange that was given up does not disturb later ones", "[conformance]") {
  for (const int ranks : rank_counts) {
    std::vector<std::vector<std::unique_ptr<Correspondent>>> given_up(static_cast<std::size_t>(ranks));
    on_ranks(ranks, [&, ranks](Transport& transport) {
      auto& own_given_up = given_up[static_cast<std::size_t>(transport.rank())];
      for (unsigned round = 0; round < 12; ++round) {
        Mail mail{round, {}};
        for (int rank = 0; rank < ranks; ++rank) {
          mail.letters.push_back({rank, (rank + 1) % ranks, 20});
          mail.letters.push_back({rank, (rank + 1) % ranks, 300000});
        }
        own_given_up.push_back(std::make_unique<Correspondent>(transport));
        if (round % 3 != 0 || transport.rank() != 0) own_given_up.back()->begin(mail);
        if (round % 2 == 0) (void)own_given_up.back()->exchange().is_complete();
        if (round % 4 == 0) meet(transport);
        own_given_up.back()->give_up();

        Correspondent own(transport);
        for (unsigned i = 0; i < 3; ++i) {
          own.begin(random_mail(ranks, round * 3 + i, 5000, 2));
          own.finish();
        }
      }
    });
  }
}

TEST_CASE("letters that an object keeps come whole though it and their owner are gone", "[conformance]") {
  for (const int ranks : {2, 3, 5}) {
    on_ranks(ranks, [=](Transport& transport) {
      for (const std::size_t bytes : {std::size_t{20}, std::size_t{5000}, std::size_t{100000}, std::size_t{300000}}) {
        auto exchange = transport.open_exchange(soon());
        std::vector<std::vector<std::byte>> others;  // that take the memory of what is freed
        if (transport.rank() == 0) {
          auto memory = std::make_shared<std::vector<std::byte>>(bytes);
          fill(memory->data(), bytes, 1, bytes);
          const kplan::transport::OutgoingLetter letter{1, *memory};
          exchange->keep(memory);
          exchange->begin({&letter, 1}, std::vector<int>());
          exchange.reset();
          memory.reset();
          for (int k = 0; k < 8; ++k) others.emplace_back(bytes, std::byte{0xee});
        }
        meet(transport);
        if (transport.rank() == 1) {
          exchange->begin({}, std::vector<int>{0});
          wait_for(transport, "a letter", [&] { return exchange->is_complete(); });
          claim(exchange->received().size() == 1 && exchange->received()[0].bytes.size() == bytes, "it has come");
          claim_filled(exchange->received()[0].bytes.data(), bytes, 1, bytes);
        }
        meet(transport);
      }
    });
  }
}

TEST_CASE("objects can be opened and closed thousands of times without growth", "[conformance]") {
  for (const int ranks : rank_counts) {
    // Ranks that share cores take milliseconds for each.
    const bool share_cores = ranks > static_cast<int>(std::thread::hardware_concurrency());
    const unsigned rounds = 1000 + (share_cores ? 2000 : 10000);
    on_ranks(ranks, [=](Transport& transport) {
      std::size_t before = 0;
      for (unsigned round = 0; round < rounds; ++round) {
        if (round == 1000) {
          meet(transport);
          before = allocated_bytes();
        }
        Correspondent own(transport);
        const int from = static_cast<int>(round) % ranks;
        own.begin({round, {{from, (from + 1) % ranks, round % 100}}},
                  round % 2 == 0 ? Sources::unknown : Sources::known);
        own.finish();
      }
      meet(transport);
      const std::size_t after = allocated_bytes();
      claim(after < before + 20 * (rounds - 1000),
            std::to_string(rounds - 1000) + " objects left " + std::to_string(after - before) + " bytes behind");
    });
  }
}

TEST_CASE("objects for set-up may be closed at different times, whatever they carried", "[conformance]") {
  for (const bool are_sources_known : {false, true}) {
    for (const int ranks : {2, 3, 5}) {
      on_ranks(ranks, [=](Transport& transport) {
        std::unique_ptr<Correspondent> late;
        std::minstd_rand random(static_cast<unsigned>(transport.rank()) + 1);
        for (unsigned round = 0; round < 40; ++round) {
          auto own = std::make_unique<Correspondent>(transport, transport.open_exchange(soon(), Use::set_up));
          for (unsigned k = 0; k <= round % 3; ++k) {
            const bool is_known = are_sources_known && round > 20 && k > 0;
            own->begin(random_mail(ranks, 10 * round + k, round % 10 == 0 ? 3000000 : 300, is_known ? 1 : 3),
                       is_known ? Sources::known : Sources::unknown);
            own->finish();
          }
          // Some keep it while the next one is opened.
          if (round % 4 == 0 && random() % 2 == 0) late = std::move(own);
          else late.reset();
        }
      });
    }
  }
}

TEST_CASE("an object for set-up that is closed under way leaves nothing to the next", "[conformance]") {
  for (const int ranks : {2, 3, 5}) {
    on_ranks(ranks, [=](Transport& transport) {
      for (unsigned round = 0; round < 6; ++round) {
        auto own = std::make_unique<Correspondent>(transport, transport.open_exchange(soon(), Use::set_up));
        own->begin(random_mail(ranks, round, 300, 3));
        if (round % 2 == 0) own->finish();
        own->give_up();
        Correspondent next(transport, transport.open_exchange(soon(), Use::set_up));
        next.begin(random_mail(ranks, 100 + round, 300, 3));
        next.finish();
        meet(transport);
      }
    });
  }
}
