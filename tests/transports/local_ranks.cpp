// The conformance cases on threads.
#include "tests/transports/ranks.hpp"

namespace kplan::tests {

void on_ranks(int ranks, const std::function<void(Transport&)>& body) {
  transport::run_local(ranks, [&](std::shared_ptr<Transport> transport) { body(*transport); });
}

int most_ahead(int slots) { return slots; }

int many_channels() { return 1000; }

}  // namespace kplan::tests
