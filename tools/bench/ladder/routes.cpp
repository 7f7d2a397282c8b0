// How it works: transports look at the environment when they are made, so it is set for that long.
#include <fmt/format.h>

#include <cstdlib>
#include <optional>

#include "kplan/error.hpp"
#include "kplan/mpi.hpp"
#include "tools/bench/ladder/paths.hpp"
#include "tools/bench/report.hpp"

namespace kplan::bench {
namespace {

/// A variable of the environment that has another value for a while.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    setenv(name, value, 1);
  }
  ~Setting() {
    if (before_) setenv(name_, before_->c_str(), 1);
    else unsetenv(name_);
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// Where libfabric or the provider is missing, all ranks are told so and get null.
std::shared_ptr<transport::Transport> ofi_by(const Team& pair, const char* provider) {
  int launched = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &launched);
  std::string problem = "its world is that of all launched ranks; start two";
  if (launched == pair.size) {
    const Setting setting("KPLAN_OFI_PROVIDER", provider);
    try {
      return transport::ofi_world();
    } catch (const Unsupported& error) {
      problem = error.what();
    }
  }
  say(pair, fmt::format("ofi {} is skipped: {}\n", provider, problem));
  return nullptr;
}

}  // namespace

std::vector<Route> routes(Team& pair) {
  std::vector<Route> out{{"kplan", transport::mpi(pair.comm), false, true}};
  const Setting setting("KPLAN_NODE", "off");
  out.push_back({"kplan, KPLAN_NODE=off", transport::mpi(pair.comm), true, false});
  for (const char* provider : {"tcp", "shm"}) {
    auto ofi = ofi_by(pair, provider);
    if (!ofi) continue;
    pair.driven.push_back(ofi);
    drive_together(pair);  // a rank may come back before the other one has reached it
    out.push_back({fmt::format("kplan, ofi {}", provider), std::move(ofi), true, true});
  }
  return out;
}

}  // namespace kplan::bench
