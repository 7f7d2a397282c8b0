// What every transport does with the letters of one sparse exchange. Run on each backend by its own on_ranks.
#include <catch2/catch.hpp>

#include "tests/transports/letters.hpp"

using namespace kplan::tests;

TEST_CASE("a sparse exchange brings every letter to its rank, whole and in order", "[conformance]") {
  for (const int ranks : rank_counts) {
    on_ranks(ranks, [=](Transport& transport) {
      Correspondent own(transport);
      for (unsigned seed = 0; seed < 60; ++seed) {
        own.begin(random_mail(ranks, seed, seed % 10 == 0 ? 100000 : 500, 4));
        own.finish();
      }
    });
  }
}

TEST_CASE("an exchange whose receivers know their sources brings every letter", "[conformance]") {
  for (const int ranks : rank_counts) {
    on_ranks(ranks, [=](Transport& transport) {
      Correspondent own(transport);
      for (unsigned seed = 0; seed < 60; ++seed) {
        own.begin(random_mail(ranks, seed, seed % 10 == 0 ? 100000 : 500, 1), Sources::known);
        own.finish();
      }
    });
  }
}

TEST_CASE("an exchange is complete before the first has begun, and nothing has come", "[conformance]") {
  on_ranks(2, [](Transport& transport) {
    const auto exchange = transport.open_exchange(soon());
    claim(exchange->is_complete(), "it is complete");
    claim(exchange->received().empty() && exchange->waits_for().empty(), "it has nothing and wants nothing");
    meet(transport);
  });
}

TEST_CASE("an exchange in which nobody sends ends on every rank", "[conformance]") {
  for (const int ranks : rank_counts) {
    on_ranks(ranks, [](Transport& transport) {
      Correspondent own(transport);
      for (int i = 0; i < 100; ++i) {
        own.begin({}, i % 3 == 2 ? Sources::known : Sources::unknown);
        own.finish();
      }
    });
  }
}

TEST_CASE("an exchange without known sources does not end before every rank has begun it", "[conformance]") {
  for (const int ranks : {2, 3, 5}) {
    on_ranks(ranks, [=](Transport& transport) {
      Correspondent own(transport);
      for (int late = 0; late < ranks; ++late) {
        const bool is_late = transport.rank() == late;
        if (!is_late) own.begin({});
        for (int i = 0; i < 300 && !is_late; ++i) {
          transport.progress();
          claim(!own.exchange().is_complete(), "it is not complete");
        }
        meet(transport);
        if (is_late) own.begin({});
        own.finish();
      }
    });
  }
}

TEST_CASE("letters without bytes arrive", "[conformance]") {
  for (const int ranks : rank_counts) {
    on_ranks(ranks, [=](Transport& transport) {
      Correspondent own(transport);
      for (const Sources sources : {Sources::unknown, Sources::known, Sources::unknown}) {
        Mail mail;
        for (int from = 0; from < ranks; ++from) {
          for (int to = 0; to < ranks; ++to) mail.letters.push_back({from, to, 0});
        }
        own.begin(mail, sources);
        own.finish();
      }
    });
  }
}

TEST_CASE("a rank gets its letters to itself", "[conformance]") {
  for (const int ranks : rank_counts) {
    on_ranks(ranks, [=](Transport& transport) {
      Correspondent own(transport);
      for (unsigned round = 0; round < 20; ++round) {
        Mail mail{round, {}};
        for (int rank = 0; rank < ranks; ++rank) {
          mail.letters.push_back({rank, rank, 300000});
          if (round % 2 == 0) mail.letters.push_back({rank, rank, 5});
          if (ranks > 1) mail.letters.push_back({rank, (rank + 1) % ranks, 6});
        }
        own.begin(mail, round % 2 == 0 ? Sources::unknown : Sources::known);
        own.finish();
      }
    });
  }
}

TEST_CASE("letters from one rank to another keep their order, however different their sizes", "[conformance]") {
  for (const int ranks : {2, 3, 5}) {
    on_ranks(ranks, [=](Transport& transport) {
      Correspondent own(transport);
      Mail mail{3, {}};
      const std::size_t sizes[] = {500000, 0, 8, 70000, 1, 1 << 20, 64, 4097};
      for (const std::size_t bytes : sizes) {
        for (int rank = 0; rank < ranks; ++rank) mail.letters.push_back({rank, (rank + 1) % ranks, bytes});
      }
      for (int i = 0; i < 10; ++i) {
        own.begin(mail);
        own.finish();
      }
    });
  }
}

TEST_CASE("many ranks send many letters to one, and it does not send", "[conformance]") {
  for (const int ranks : rank_counts) {
    on_ranks(ranks, [=](Transport& transport) {
      Correspondent own(transport);
      for (int to = 0; to < ranks; ++to) {
        Mail mail{7, {}};
        for (int from = 0; from < ranks; ++from) {
          for (std::size_t i = 0; i < 300 && from != to; ++i) mail.letters.push_back({from, to, i % 40 * 8});
        }
        own.begin(mail);
        own.finish();
      }
    });
  }
}

TEST_CASE("letters of megabytes are whole", "[conformance]") {
  for (const int ranks : {2, 3, 5}) {
    on_ranks(ranks, [=](Transport& transport) {
      Correspondent own(transport);
      for (const Sources sources : {Sources::unknown, Sources::known}) {
        Mail mail{11, {}};
        for (int rank = 0; rank < ranks; ++rank) {
          mail.letters.push_back({rank, (rank + 1) % ranks, (std::size_t{5} << 20) + 3});
          if (ranks > 2) mail.letters.push_back({rank, (rank + ranks - 1) % ranks, std::size_t{2} << 20});
        }
        own.begin(mail, sources);
        own.finish();
      }
    });
  }
}

TEST_CASE("letters can be read before the exchange ends", "[conformance]") {
  on_ranks(3, [](Transport& transport) {
    Correspondent own(transport);
    const Mail mail{13, {{0, 1, 1000}}};
    if (transport.rank() != 2) own.begin(mail);
    if (transport.rank() == 1) {
      wait_for(transport, "the letter", [&] {
        claim(!own.exchange().is_complete(), "rank 2 has not come");
        return own.exchange().received().size() == 1;
      });
      own.claim_received();
    }
    meet(transport);
    if (transport.rank() == 2) own.begin(mail);
    own.finish();
  });
}
