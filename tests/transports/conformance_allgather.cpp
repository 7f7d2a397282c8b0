// What every transport's allgather does. A rank that does not come is tested for local alone in local_test.cpp, where
// the error names it, and in mpi_test.cpp; death for local alone, since MPI does not tell of it.
#include <catch2/catch.hpp>

#include "tests/transports/ranks.hpp"

using namespace kplan::tests;

TEST_CASE("allgather gives every rank the bytes of all, of any length and content", "[conformance]") {
  for (const int ranks : rank_counts) {
    on_ranks(ranks, [=](Transport& transport) {
      const auto text_of = [](int rank, int round) {
        std::string text(static_cast<std::size_t>((rank * 37 + round * 11) % 100), static_cast<char>(rank));
        return rank % 2 == round % 2 ? text : std::string();
      };
      for (int round = 0; round < 300; ++round) {
        const auto all = transport.allgather(text_of(transport.rank(), round), soon());
        claim(all.size() == static_cast<std::size_t>(ranks), "there is one text a rank");
        for (int rank = 0; rank < ranks; ++rank)
          claim(all[static_cast<std::size_t>(rank)] == text_of(rank, round), "the text is that of its rank");
      }
    });
  }
}

TEST_CASE("allgather carries nothing from anyone", "[conformance]") {
  for (const int ranks : rank_counts) {
    on_ranks(ranks, [=](Transport& transport) {
      claim(transport.allgather("", soon()) == std::vector<std::string>(static_cast<std::size_t>(ranks)),
            "all are empty");
    });
  }
}

TEST_CASE("allgather carries a megabyte", "[conformance]") {
  for (const int ranks : rank_counts) {
    on_ranks(ranks, [=](Transport& transport) {
      const auto all = transport.allgather(std::string(1 << 20, static_cast<char>('a' + transport.rank())), soon());
      for (int rank = 0; rank < ranks; ++rank)
        claim(all[static_cast<std::size_t>(rank)] == std::string(1 << 20, static_cast<char>('a' + rank)),
              "all is there");
    });
  }
}

TEST_CASE("allgathers of a few bytes and of many follow each other", "[conformance]") {
  for (const int ranks : rank_counts) {
    on_ranks(ranks, [=](Transport& transport) {
      const auto text_of = [](int rank, int round) {  // long ones of all ranks, of one, of none
        constexpr std::size_t lengths[] = {16319, 16320, 16321, 40000, 5};
        const bool is_long = round % 4 == 0 || (round % 4 == 1 && rank == round % 3);
        return std::string(is_long ? lengths[round % 5] : 3, static_cast<char>('a' + (rank + round) % 26));
      };
      for (int round = 0; round < 60; ++round) {
        const auto all = transport.allgather(text_of(transport.rank(), round), soon());
        for (int rank = 0; rank < ranks; ++rank)
          claim(all[static_cast<std::size_t>(rank)] == text_of(rank, round), "the text is that of its rank");
      }
    });
  }
}
