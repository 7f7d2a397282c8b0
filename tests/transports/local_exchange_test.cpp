// What sparse exchanges between threads do beyond the conformance cases: ranks that end, numbers near the bounds of
// shorter integers, and boards that are not kept.
#include <catch2/catch.hpp>

#include "tests/transports/letters.hpp"
#include "transports/local/sparse_exchange.hpp"
#include "transports/local/world.hpp"

using namespace kplan::tests;
using namespace kplan::transport::local_backend;
using kplan::transport::local;

TEST_CASE("an exchange between threads names exactly the ranks that have not begun it") {
  const auto transports = local(4);
  std::vector<std::unique_ptr<SparseExchange>> exchanges;
  for (const auto& transport : transports) exchanges.push_back(transport->open_exchange(soon()));
  const int absent[][2] = {{1, 3}, {0, 2}, {3, 0}};
  for (const auto& [first, second] : absent) {
    for (int rank = 0; rank < 4; ++rank) {
      if (rank != first && rank != second) exchanges[static_cast<std::size_t>(rank)]->begin({});
    }
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == first || rank == second) continue;
      CHECK_FALSE(exchanges[static_cast<std::size_t>(rank)]->is_complete());
      CHECK(exchanges[static_cast<std::size_t>(rank)]->waits_for() ==
            std::vector<int>{std::min(first, second), std::max(first, second)});
    }
    for (const int rank : {first, second}) exchanges[static_cast<std::size_t>(rank)]->begin({});
    for (const auto& exchange : exchanges) CHECK(exchange->is_complete());
  }
}

TEST_CASE("an exchange whose rank has ended is not complete, and names it") {
  auto transports = local(3);
  std::vector<std::unique_ptr<SparseExchange>> exchanges;
  for (const auto& transport : transports) exchanges.push_back(transport->open_exchange(soon()));
  exchanges[2].reset();
  transports[2].reset();
  for (std::size_t rank = 0; rank < 2; ++rank) exchanges[rank]->begin({});
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK_FALSE(exchanges[rank]->is_complete());
    CHECK(exchanges[rank]->waits_for() == std::vector<int>{2});
    CHECK(transports[rank]->is_dead(2));
  }
}

TEST_CASE("letters of a rank that has ended can still be read") {
  auto transports = local(2);
  std::vector<std::unique_ptr<Correspondent>> ends;
  for (const auto& transport : transports) ends.push_back(std::make_unique<Correspondent>(*transport));
  const Mail mail{4, {{0, 1, 1000}, {0, 1, 10}}};
  for (const auto& end : ends) end->begin(mail);
  ends[0]->finish();
  ends[0].reset();
  transports[0].reset();
  ends[1]->finish();
}

TEST_CASE("exchanges between threads count on beyond 31, 32 and 64 bits") {
  for (const std::uint64_t first :
       {(std::uint64_t{1} << 31) - 5, (std::uint64_t{1} << 32) - 6, ~std::uint64_t{0} - 4}) {
    for (const int ranks : rank_counts) {
      const auto board = std::make_shared<Board>(ranks, first);
      on_ranks(ranks, [&](Transport& transport) {
        Correspondent own(transport, sparse_exchange(board, transport.rank()));
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

TEST_CASE("a board is the same for all ranks, and is let go when each has fetched it") {
  World world(3);
  const auto first = world.board(0);
  const auto second = world.board(1);
  CHECK(first != second);
  CHECK(world.board(0) == first);
  CHECK(first.use_count() == 2);  // the world's
  CHECK(world.board(0) == first);
  CHECK(first.use_count() == 1);
  CHECK(second.use_count() == 2);
}
