// How it works: one thread a rank, each holding the only reference to its transport unless the body keeps one, so that
// a body that throws is dead to the others and they get errors instead of waiting.
#include <exception>
#include <thread>

#include "kplan/transport.hpp"
#include "transports/codes.hpp"

namespace kplan::transport {
namespace {

/// How much an error says about the cause: 0 a cause, 1 a failure of the transport, 2 the mere loss of another rank.
int remoteness(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const TransportError& error) {
    return error.code() == codes::lost ? 2 : 1;
  } catch (...) {
    return 0;
  }
}

}  // namespace

void run_local(int ranks, const std::function<void(std::shared_ptr<Transport>)>& body) {
  std::vector<std::shared_ptr<Transport>> transports = local(ranks);
  std::vector<std::exception_ptr> thrown(transports.size());
  std::exception_ptr not_started;
  std::vector<std::thread> threads;
  threads.reserve(transports.size());
  try {
    for (std::size_t rank = 0; rank < transports.size(); ++rank) {
      threads.emplace_back([&body, &failure = thrown[rank], own = transports[rank]]() mutable {
        try {
          body(std::move(own));
        } catch (...) {
          failure = std::current_exception();
        }
      });
      transports[rank].reset();
    }
  } catch (...) {
    not_started = std::current_exception();
    transports.clear();  // the ranks that run must not wait for those that never will
  }
  for (std::thread& thread : threads) thread.join();
  if (not_started) std::rethrow_exception(not_started);

  for (int level = 0; level <= 2; ++level) {
    for (const std::exception_ptr& failure : thrown) {
      if (failure && remoteness(failure) == level) std::rethrow_exception(failure);
    }
  }
}

}  // namespace kplan::transport
