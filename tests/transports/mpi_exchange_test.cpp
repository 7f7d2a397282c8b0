// What sparse exchanges over MPI do beyond the conformance cases: letters and numbers beyond its limits, and tags that
// run out.
#include <catch2/catch.hpp>
#include <numeric>

#include "tests/transports/letters.hpp"
#include "tests/transports/limited_ranks.hpp"
#include "transports/mpi/inbox.hpp"

using namespace kplan::tests;
using kplan::transport::OutgoingLetter;
using kplan::transport::mpi_backend::FirstMessage;
using namespace std::chrono_literals;

TEST_CASE("letters of more bytes than a count can say are whole") {
  for (const int ranks : rank_counts) {
    on_limited_ranks(ranks, {0, 100}, [=](Transport& transport) {
      Correspondent own(transport);
      Mail mail{5, {}};
      for (const std::size_t bytes :
           {std::size_t{99}, std::size_t{100}, std::size_t{101}, std::size_t{200}, std::size_t{9999}}) {
        for (int from = 0; from < ranks; ++from) mail.letters.push_back({from, (from + 1) % ranks, bytes});
      }
      for (int i = 0; i < 5; ++i) {
        own.begin(mail);
        own.finish();
      }
    });
  }
}

TEST_CASE("letters that are expected are whole, in however many messages they go") {
  for (const int max_count : {2147483647, 100}) {
    const FirstMessage first({0, max_count});
    on_limited_ranks(2, {0, max_count}, [=](Transport& transport) {
      Correspondent own(transport);
      unsigned seed = 0;
      for (const std::size_t around : {std::size_t{1}, first.unasked, 2 * first.unasked, first.most, 2 * first.most}) {
        for (const std::size_t bytes : {around - 1, around, around + 1}) {
          own.begin({++seed, {{0, 1, bytes}, {1, 0, bytes / 2}}}, Sources::known);
          own.finish();
        }
      }
    });
  }
}

TEST_CASE("bodies of more bytes than a count can say are whole, in one region or several") {
  on_limited_ranks(2, {0, 100}, [](Transport& transport) {
    const auto exchange = transport.open_exchange(soon());
    const int other = 1 - transport.rank();
    for (const std::vector<std::size_t>& parts :
         {std::vector<std::size_t>{99}, {100}, {101}, {9999}, {250, 0, 1, 100, 333}}) {
      const std::size_t bytes = std::accumulate(parts.begin(), parts.end(), std::size_t{0});
      std::vector<std::byte> sent(bytes), came(bytes);
      fill(sent.data(), bytes, static_cast<unsigned>(transport.rank()), 1);
      std::vector<std::span<const std::byte>> from;
      std::vector<std::span<std::byte>> to;
      for (std::size_t at = 0, k = 0; k < parts.size(); at += parts[k++]) {
        from.push_back(std::span(sent).subspan(at, parts[k]));
        to.push_back(std::span(came).subspan(at, parts[k]));
      }
      const OutgoingLetter letter{other, {}, from};
      exchange->begin({&letter, 1});
      wait_for(transport, "letters", [&] { return exchange->letters_have_come(); });
      exchange->place_body(other, to);
      wait_for(transport, "bodies", [&] { return exchange->is_complete(); });
      claim_filled(came.data(), bytes, static_cast<unsigned>(other), 1);
    }
  });
}

TEST_CASE("a body of another length than its place is an error") {
  on_limited_ranks(2, {0, 0}, [](Transport& transport) {
    const auto exchange = transport.open_exchange(soon());
    const int other = 1 - transport.rank();
    std::vector<std::byte> sent(1000), came(999);
    const std::span<const std::byte> from(sent);
    const std::span<std::byte> to(came);
    const OutgoingLetter letter{other, {}, {&from, 1}};
    exchange->begin({&letter, 1});
    wait_for(transport, "letters", [&] { return exchange->letters_have_come(); });
    exchange->place_body(other, {&to, 1});
    const std::string code = code_of([&] { wait_for(transport, "bodies", [&] { return exchange->is_complete(); }); });
    claim(code == "KP-T003", code);
  });
}

TEST_CASE("an expected letter that is given up as it comes does not disturb later ones") {
  std::vector<std::unique_ptr<Correspondent>> given_up;  // what they send must stay
  on_ranks(2, [&](Transport& transport) {
    unsigned seed = 0;
    for (const std::size_t bytes : {std::size_t{20}, std::size_t{5000}, std::size_t{100000}, std::size_t{300000}}) {
      for (unsigned looks = 0; looks < 6; ++looks) {
        given_up.push_back(std::make_unique<Correspondent>(transport));
        given_up.back()->begin({++seed, {{0, 1, bytes}, {1, 0, bytes}}}, Sources::known);
        for (unsigned look = 0; look < looks; ++look) (void)given_up.back()->exchange().is_complete();
        given_up.back()->give_up();

        Correspondent own(transport);
        for (const Sources sources : {Sources::known, Sources::unknown}) {
          own.begin({++seed, {{0, 1, bytes}, {1, 0, bytes}}}, sources);
          own.finish();
        }
      }
    }
  });
}

TEST_CASE("exchanges of an object count on beyond 31, 32 and 64 bits") {
  for (const std::uint64_t first :
       {(std::uint64_t{1} << 31) - 5, (std::uint64_t{1} << 32) - 6, ~std::uint64_t{0} - 4}) {
    for (const int ranks : rank_counts) {
      on_limited_ranks(ranks, {0, 0, first}, [=](Transport& transport) {
        Correspondent own(transport);
        std::minstd_rand random(static_cast<unsigned>(transport.rank()) + 1);
        for (unsigned seed = 0; seed < 20; ++seed) {
          dawdle(random, 50);
          own.begin(random_mail(ranks, seed, 100, seed % 5 == 4 ? 1 : 3),
                    seed % 5 == 4 ? Sources::known : Sources::unknown);
          own.finish();
        }
      });
    }
  }
}

TEST_CASE("exchanges can be opened for ever though a communicator has few tags, without growth") {
  for (const int ranks : rank_counts) {
    on_limited_ranks(ranks, {13, 0}, [=](Transport& transport) {
      std::size_t before = 0;
      for (unsigned round = 0; round < 10000; ++round) {
        if (round == 1000) before = allocated_bytes();
        Correspondent own(transport);
        if (round % 50 != 0) continue;
        own.begin(random_mail(ranks, round, 100, 2));
        own.finish();
      }
      const std::size_t after = allocated_bytes();  // MPI keeps a little of each of the 3000 communicators
      claim(after < before + 500000, "9000 objects left " + std::to_string(after - before) + " bytes behind");
    });
  }
}

TEST_CASE("exchanges in flight on communicators of before and of now may be waited for in any order") {
  for (const int ranks : rank_counts) {
    on_limited_ranks(ranks, {13, 0}, [=](Transport& transport) {  // three objects a communicator
      for (unsigned round = 0; round < 20; ++round) {
        std::vector<std::unique_ptr<Correspondent>> objects;
        for (unsigned i = 0; i < 8; ++i) {
          objects.push_back(std::make_unique<Correspondent>(transport));
          objects.back()->begin(random_mail(ranks, round * 8 + i, round % 4 == 0 ? 200000 : 300, 3));
        }
        for (unsigned i = 0; i < 8; ++i) {
          const unsigned step = transport.rank() % 2 == 0 ? 1 : 3;
          objects[i * step % 8]->finish();
        }
      }
    });
  }
}

TEST_CASE("no exchange is opened on a transport that has failed") {
  on_ranks(2, [](Transport& transport) {
    if (transport.rank() != 0) return;
    claim(code_of([&] { (void)transport.allgather("here", Clock::now() + 100ms); }) == "KP-T001", "it is too late");
    claim(code_of([&] { (void)transport.open_exchange(soon()); }) == "KP-T008", "it is refused");
  });
}
