#pragma once
// Transports over MPI with lowered limits, so that tests reach them.

#include <functional>
#include <string>

#include "tests/transports/ranks.hpp"
#include "transports/mpi/transport.hpp"

namespace kplan::tests {

/// Runs `body` on a transport over the first `ranks` processes with lowered limits.
void on_limited_ranks(int ranks, transport::mpi_backend::Limits limits, const std::function<void(Transport&)>& body);

/// The code of the error that `call` throws, or `no error`.
template <class Call>
std::string code_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return "no error";
}

}  // namespace kplan::tests
