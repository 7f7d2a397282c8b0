// The control plane on threads: whom it lets in, whom it misses, and whose end it tells of.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <thread>

#include "tests/transports/ranks.hpp"
#include "transports/control/member.hpp"

using namespace kplan::tests;
using namespace kplan::transport::control;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

const auto no_move = [] {};

/// What each member of a world on this machine needs to join it.
std::vector<Launch> launches(int size) {
  std::vector<Launch> out(static_cast<std::size_t>(size));
  out[0].listener = listen_at({"127.0.0.1", 0});
  const std::uint16_t port = port_of(out[0].listener);
  for (int rank = 0; rank < size; ++rank) {
    Launch& launch = out[static_cast<std::size_t>(rank)];
    launch.rank = rank;
    launch.size = size;
    launch.hub = {{"127.0.0.1", port}};
    launch.key = "test";
  }
  return out;
}

std::vector<std::unique_ptr<Member>> members(std::vector<Launch> all) {
  std::vector<std::unique_ptr<Member>> out;
  for (Launch& launch : all) out.push_back(std::make_unique<Member>(std::move(launch), soon()));
  return out;
}

void wait_until_dead(Member& member, int rank) {
  const Clock::time_point deadline = soon();
  while (!member.is_dead(rank) && Clock::now() < deadline) std::this_thread::sleep_for(1ms);
  CHECK(member.is_dead(rank));
}

struct Variables {
  Variables(const char* rendezvous, const char* rank, const char* size) {
    setenv("KPLAN_RENDEZVOUS", rendezvous, 1);
    setenv("KPLAN_RANK", rank, 1);
    setenv("KPLAN_SIZE", size, 1);
  }
  ~Variables() {
    for (const char* name : {"KPLAN_RENDEZVOUS", "KPLAN_RANK", "KPLAN_SIZE"}) unsetenv(name);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
};

}  // namespace

TEST_CASE("members gather what each brings, call after call") {
  for (const int size : rank_counts) {
    std::vector<std::thread> threads;
    std::vector<int> right(static_cast<std::size_t>(size));
    for (Launch& launch : launches(size)) {
      threads.emplace_back([&right, launch = std::make_shared<Launch>(std::move(launch))] {
        const auto rank = static_cast<std::size_t>(launch->rank);
        Member own(std::move(*launch), soon());
        for (int call = 0; call < 50; ++call) {
          const auto all = own.allgather(std::string(rank * 1000, static_cast<char>('a' + call % 20)), soon(), no_move);
          bool is_right = all.size() == right.size();
          for (std::size_t i = 0; i < all.size(); ++i)
            is_right = is_right && all[i] == std::string(i * 1000, static_cast<char>('a' + call % 20));
          right[rank] += is_right ? 1 : 0;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(right == std::vector<int>(static_cast<std::size_t>(size), 50));
  }
}

TEST_CASE("a second process of the same rank is refused") {
  std::vector<Launch> all = launches(2);
  Launch doubled;
  doubled.rank = 1;
  doubled.size = 2;
  doubled.hub = all[1].hub;
  doubled.key = "test";
  const auto own = members(std::move(all));
  CHECK_THAT(refusal<kplan::Error>([&] { Member(std::move(doubled), soon()); }),
             Contains("two processes of this world say that they are rank 1") && Contains("[KP-T010]"));
}

TEST_CASE("a process that means another world is refused") {
  for (const bool is_other_size : {true, false}) {
    std::vector<Launch> all = launches(2);
    (is_other_size ? all[1].size : all[1].rank) += is_other_size ? 1 : 0;
    if (!is_other_size) all[1].key = "another";
    Member first(std::move(all[0]), soon());
    CHECK_THAT(refusal<kplan::Error>([&] { Member(std::move(all[1]), soon()); }),
               Contains("rank 0 waits for ranks of a world of 2"));
  }
}

TEST_CASE("connections that say nothing, or nonsense, do no harm") {
  std::vector<Launch> all = launches(2);
  const Address hub = all[1].hub[0];
  Member first(std::move(all[0]), soon());
  const Socket silent = connect_to(hub, soon());
  Stream noisy(connect_to(hub, soon()));
  noisy.send(Word::contribution, 1, std::string(100000, 'x'));
  Stream odd(connect_to(hub, soon()));
  odd.send(static_cast<Word>(77), -5, std::string("y"));
  Member second(std::move(all[1]), soon());
  std::string heard;
  std::thread other([&] { heard = second.allgather("b", soon(), no_move).at(0); });
  CHECK(first.allgather("a", soon(), no_move).at(1) == "b");
  other.join();
  CHECK(heard == "a");
}

TEST_CASE("a rank that nobody starts is named when the others' time is up") {
  std::vector<Launch> all = launches(3);
  Member first(std::move(all[0]), soon());
  std::string of_second;
  std::thread other([&] {
    Member second(std::move(all[1]), soon());
    of_second = refusal<kplan::Error>([&] { (void)second.allgather("", soon(), no_move); });
  });
  std::this_thread::sleep_for(100ms);  // so that rank 1 is in; if it is not, it is named too, and told all the same
  CHECK_THAT(refusal<kplan::Error>([&] { (void)first.allgather("", Clock::now() + 250ms, no_move); }),
             Contains("rank 0 waited 0.2") && Contains("2 of 3 to come to it") && Contains("[KP-T001]"));
  other.join();
  CHECK_THAT(of_second, Contains("rank 1 is in a collective call, and rank 0 waited"));
}

TEST_CASE("a collective call that ends as a member's time does ends well there, too") {
  std::vector<Launch> all = launches(2);
  std::thread hub([&] {
    Socket guest;
    while (!guest.is_open()) guest = accept_from(all[0].listener);
    Stream stream(std::move(guest));
    for (bool is_late = false; !is_late;) {
      const std::optional<Frame> frame = stream.receive();
      if (frame && frame->word == Word::hello) stream.send(Word::welcome, 0, frame->bytes);
      is_late = stream.is_closed() || (frame && frame->word == Word::late);
    }
    const std::uint64_t sizes[] = {1, 1};
    stream.send(Word::gathered, 0, std::string(reinterpret_cast<const char*>(sizes), sizeof sizes) + "ab");
  });
  {
    Member member(std::move(all[1]), soon());
    std::vector<std::string> gathered;
    CHECK(refusal<kplan::Error>([&] { gathered = member.allgather("b", Clock::now(), no_move); }) == "no error");
    CHECK(gathered == std::vector<std::string>{"a", "b"});
  }
  hub.join();
}

TEST_CASE("a hub that is not there is named") {
  std::vector<Launch> all = launches(2);
  all[0].listener = {};
  CHECK_THAT(refusal<kplan::Error>([&] { Member(std::move(all[1]), Clock::now() + 200ms); }),
             Contains("rank 1 waited") && Contains("for rank 0 to answer at 127.0.0.1 port") && Contains("[KP-T001]"));
}

TEST_CASE("the end of a member is told to all, and to those who wait for it in a collective call at once") {
  auto all = members(launches(4));
  CHECK_FALSE(all[0]->dead());
  all[2].reset();
  for (const std::size_t rank : {0, 1, 3}) {
    wait_until_dead(*all[rank], 2);
    CHECK(all[rank]->dead() == 2);
    CHECK_FALSE(all[rank]->is_dead(rank == 1 ? 3 : 1));
    CHECK_THAT(refusal<kplan::Error>([&] { (void)all[rank]->allgather("", soon(), no_move); }),
               Contains("waits in a collective call for rank 2, which has ended") && Contains("[KP-T002]"));
  }
}

TEST_CASE("a member may end once it has contributed to the last collective call") {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> threads;
    std::vector<std::string> failures(3);
    for (Launch& launch : launches(3)) {
      threads.emplace_back([&failures, launch = std::make_shared<Launch>(std::move(launch))] {
        const auto rank = static_cast<std::size_t>(launch->rank);
        failures[rank] = refusal<kplan::Error>([&] {
          Member own(std::move(*launch), soon());
          (void)own.allgather("x", soon(), no_move);
        });
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(failures == std::vector<std::string>(3, "no error"));
  }
}

TEST_CASE("the others go on when rank 0 has taken its leave") {
  auto all = members(launches(3));
  all[0].reset();
  wait_until_dead(*all[1], 0);
  CHECK_FALSE(all[1]->is_dead(2));
  all[2].reset();
  wait_until_dead(*all[1], 2);
}

TEST_CASE("variables of a rendezvous that do not fit are refused and quoted") {
  const auto refused = [](const char* rendezvous, const char* rank, const char* size) {
    const Variables variables(rendezvous, rank, size);
    return refusal<kplan::Error>([] { (void)launch_from_environment(soon()); });
  };
  CHECK_THAT(refused("localhost", "0", "2"), Contains("KPLAN_RENDEZVOUS is `localhost`") && Contains("[KP-E005]"));
  CHECK_THAT(refused("localhost:0", "0", "2"), Contains("must be host:port"));
  CHECK_THAT(refused("localhost:70000", "0", "2"), Contains("must be host:port"));
  CHECK_THAT(refused(":7000", "0", "2"), Contains("must be host:port"));
  CHECK_THAT(refused("localhost:7000", "2", "2"), Contains("KPLAN_RANK is `2`") && Contains("from 0 to 1"));
  CHECK_THAT(refused("localhost:7000", "x", "2"), Contains("KPLAN_RANK is `x`"));
  CHECK_THAT(refused("localhost:7000", "0", "0"), Contains("KPLAN_SIZE is `0`"));
  CHECK_THAT(refused("localhost:7000", "0", ""), Contains("KPLAN_SIZE is ``"));
}

TEST_CASE("a rendezvous may name an address of version 6") {
  const Variables variables("[::1]:7000", "1", "2");
  const Launch launch = launch_from_environment(soon());
  CHECK(launch.hub.at(0).host == "::1");
  CHECK(launch.hub.at(0).port == 7000);
  CHECK_FALSE(launch.listener.is_open());
}
