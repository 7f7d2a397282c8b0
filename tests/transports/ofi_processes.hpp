#pragma once
// The processes on which tests of the libfabric transport run, started by mpirun or by start_processes(), and
// transports over some of them.

#include <functional>
#include <memory>

#include "tests/transports/ranks.hpp"
#include "transports/ofi/transport.hpp"

namespace kplan::tests {

/// Starts this program so many times, with the same arguments but the first, as the ranks of a rendezvous, and waits
/// for all. Returns the largest exit code.
int start_processes(int processes, char** arguments);

/// The control plane over all processes, made at the first call; collective then.
transport::control::Member& all_processes();
std::vector<std::string> gather(const std::string& mine);

/// Runs `body` on a transport over the first `ranks` processes with these limits, as on_ranks does.
void on_ofi_ranks(int ranks, transport::ofi_backend::Limits limits, const std::function<void(Transport&)>& body);

/// A transport over the first `ranks` processes, which all processes must ask for; null on the others.
std::shared_ptr<Transport> make_world(int ranks, transport::ofi_backend::Limits limits = {});

}  // namespace kplan::tests
