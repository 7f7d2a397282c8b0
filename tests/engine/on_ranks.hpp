#pragma once
// Ranks as threads, each with an engine, and claims that hold on all of them.

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "kplan/kplan.hpp"

namespace kplan::tests {

inline void on_ranks(int ranks, const std::function<void(Engine&)>& body) {
  transport::run_local(ranks, [&](std::shared_ptr<transport::Transport> transport) {
    Engine engine(std::move(transport));
    body(engine);
  });
}

/// Like REQUIRE, for several threads.
inline void claim(bool holds, std::string_view what) {
  if (!holds) throw std::runtime_error(std::string(what));
}

/// What running into an error says; empty: none.
inline std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace kplan::tests
