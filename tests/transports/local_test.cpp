// What the local transport does beyond the conformance cases: ranks that end, that do not come, and that throw.
#include <catch2/catch.hpp>
#include <stdexcept>
#include <thread>

#include "tests/transports/ranks.hpp"

using namespace kplan::tests;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using kplan::transport::local;
using kplan::transport::run_local;

TEST_CASE("an allgather that runs out of time names the ranks that have not come") {
  auto transports = local(5);
  std::string of_rank_2;
  std::thread rank_2([&] { of_rank_2 = refusal([&] { (void)transports[2]->allgather("", Clock::now() + 60s); }); });
  const Clock::time_point begin = Clock::now();
  std::string of_rank_0;
  std::this_thread::sleep_for(50ms);  // so that rank 2 is in; if it is not, it is named too, and told all the same
  of_rank_0 = refusal([&] { (void)transports[0]->allgather("", Clock::now() + 100ms); });
  rank_2.join();
  CHECK(Clock::now() - begin < 30s);
  CHECK_THAT(of_rank_0, Contains("rank 0 waited") && Contains("1, ") && Contains("3, 4 of 5") && Contains("[KP-T001]"));
  CHECK_THAT(of_rank_2,
             Contains("rank 2 is in a collective call") && Contains("rank 0 waited") && Contains("[KP-T001]"));
  CHECK_THAT(refusal([&] { (void)transports[3]->allgather("", Clock::now() + 60s); }), Contains("rank 0 waited"));
}

TEST_CASE("a rank whose transport is destroyed is dead, and collective calls that need it fail at once") {
  auto transports = local(3);
  CHECK_FALSE(transports[0]->dead());
  transports[1].reset();
  CHECK(transports[0]->dead() == 1);
  CHECK(transports[2]->is_dead(1));
  CHECK_FALSE(transports[2]->is_dead(0));
  const auto gather = [&] { (void)transports[0]->allgather("", Clock::now() + 60s); };
  CHECK_THAT(refusal(gather),
             Contains("waits in a collective call for rank 1, which has ended") && Contains("[KP-T002]"));
  CHECK_THAT(refusal([&] { (void)transports[2]->open({}, Clock::now() + 60s); }), Contains("[KP-T002]"));
  CHECK_THAT(refusal(gather), Contains("[KP-T002]"));
}

TEST_CASE("a rank that ends while others wait for it in a collective call is an error for them") {
  for (int i = 0; i < 20; ++i) {
    auto transports = local(2);
    std::thread leaver([own = std::move(transports[1])]() mutable { own.reset(); });
    CHECK_THAT(refusal([&] { (void)transports[0]->allgather("", Clock::now() + 60s); }), Contains("[KP-T002]"));
    leaver.join();
  }
}

TEST_CASE("a rank may end once it has contributed to the last collective call") {
  for (int i = 0; i < 50; ++i) {
    CHECK_NOTHROW(run_local(5, [](std::shared_ptr<Transport> transport) {
      const auto all = transport->allgather(std::to_string(transport->rank()), soon());
      claim(all == std::vector<std::string>{"0", "1", "2", "3", "4"}, "everybody's text is there");
    }));
  }
}

TEST_CASE("messages of a rank that has ended can still be taken") {
  auto transports = local(2);
  std::unique_ptr<Channel> end;
  std::thread sender([own = std::move(transports[0])]() mutable {
    const auto channel = open_one(*own, 64, 2);
    send(*own, *channel, 0, 64, 3);
  });
  end = open_one(*transports[1], 64, 2);
  sender.join();
  receive(*transports[1], *end, 0, 64, 3);
}

TEST_CASE("a region put in place is not read any more once its sender has closed") {
  auto transports = local(2);
  std::unique_ptr<Channel> to;
  std::thread rank_0([&] { to = open_one(*transports[0], 64, 2); });
  const auto from = open_one(*transports[1], 64, 2);
  rank_0.join();
  std::vector<std::byte> regions(128);
  to->put_in_place(0, regions.data(), 64);
  to->put_in_place(1, regions.data() + 64, 64);
  CHECK(from->arrived(0) == regions.data());  // in place indeed
  std::thread closing([&] { to.reset(); });   // waits for message 0, which is being read
  std::this_thread::sleep_for(20ms);
  from->release(0);
  closing.join();
  CHECK(from->arrived(1) == nullptr);
}

TEST_CASE("a sender that closes does not wait for ever for a region that is kept, and takes the others back") {
  auto transports = local(2);
  std::unique_ptr<Channel> to;
  std::thread rank_0([&] { to = open_one(*transports[0], 64, 2); });
  const auto from = open_one(*transports[1], 64, 2);
  rank_0.join();
  std::vector<std::byte> regions(128);
  to->put_in_place(0, regions.data(), 64);
  to->put_in_place(1, regions.data() + 64, 64);
  CHECK(from->arrived(0) == regions.data());
  to.reset();
  CHECK(from->arrived(1) == nullptr);
}

TEST_CASE("the calls of the other direction are refused as a mistake of kplan's") {
  auto transports = local(2);
  std::unique_ptr<Channel> to;
  std::thread rank_0([&] { to = open_one(*transports[0], 64, 2); });
  const auto from = open_one(*transports[1], 64, 2);
  rank_0.join();
  CHECK_THROWS_AS(to->arrived(0), kplan::InternalError);
  CHECK_THROWS_AS(from->send_slot(0), kplan::InternalError);
}

TEST_CASE("ends that do not fit into memory are an error on every rank") {
  std::vector<std::string> messages(3);
  run_local(3, [&](std::shared_ptr<Transport> transport) {
    messages[static_cast<std::size_t>(transport->rank())] =
        refusal([&] { (void)open_one(*transport, std::size_t{1} << 58, 4); });
  });
  for (const std::string& message : messages) {
    CHECK_THAT(message, Contains("rank 0 could not open its channels") && Contains("[KP-T006]"));
    CHECK(message.find("[KP-") == message.rfind("[KP-"));
  }
}

TEST_CASE("run_local rethrows what the lowest rank threw, and causes before consequences") {
  CHECK_THROWS_WITH(run_local(5,
                              [](std::shared_ptr<Transport> transport) {
                                if (transport->rank() >= 3) throw std::runtime_error(std::to_string(transport->rank()));
                                meet(*transport);  // fails on ranks 0 to 2, for want of 3 and 4
                              }),
                    "3");
  CHECK_THROWS_WITH(
      run_local(2, [](std::shared_ptr<Transport> t) { throw std::runtime_error(std::to_string(t->rank())); }), "0");
  CHECK_THROWS_AS(run_local(2,
                            [](std::shared_ptr<Transport> t) {
                              if (t->rank() == 0) meet(*t);
                            }),
                  kplan::TransportError);
  CHECK_THROWS_AS(run_local(3, [](std::shared_ptr<Transport>) { throw 5; }), int);
}

TEST_CASE("a local world has at least one rank") {
  CHECK_THROWS_AS(local(0), kplan::PlanError);
  CHECK_THROWS_AS(run_local(-1, [](std::shared_ptr<Transport>) {}), kplan::PlanError);
  CHECK(local(4)[3]->rank() == 3);
  CHECK(local(4)[3]->size() == 4);
  CHECK(local(1)[0]->name() == "local");
}
