// How it works: three stages by the number of rounds in vain. Ranks that share a core must yield almost at once, since
// the one they wait for cannot run before: a step of theirs then costs microseconds instead of a time slice.
#include "transports/pause.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace kplan::transport {
namespace {

void relax_core() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

bool is_oversubscribed(int ranks) {
  // A launcher that binds each rank to a core of its own leaves one core to be seen: then the machine's count says
  // more.
  const long allowed = static_cast<long>(std::thread::hardware_concurrency());
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return ranks > (allowed > 1 ? allowed : online);
}

[[gnu::hot]] void pause_thread(unsigned idle_rounds, bool oversubscribed, Patience patience) {
  const unsigned spins = oversubscribed ? 4 : patience.spins;
  if (idle_rounds < spins) {
    relax_core();
  } else if (idle_rounds < spins + patience.yields) {
    std::this_thread::yield();
  } else {
    const unsigned sleeps = idle_rounds - spins - patience.yields;
    std::this_thread::sleep_for(std::chrono::microseconds(std::min(200u, 50u + sleeps)));
  }
}

}  // namespace kplan::transport
