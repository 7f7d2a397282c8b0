// How it works: sums field by field; the later failure is the last one.
#include "jit/statistics.hpp"

namespace kplan::jit {

Statistics& Statistics::operator+=(const Statistics& more) {
  asked += more.asked;
  from_memory += more.from_memory;
  too_long += more.too_long;
  from_disk += more.from_disk;
  generated += more.generated;
  failed += more.failed;
  dropped += more.dropped;
  plugin_load_us += more.plugin_load_us;
  emission_us += more.emission_us;
  codegen_us += more.codegen_us;
  linking_us += more.linking_us;
  placing_us += more.placing_us;
  disk_us += more.disk_us;
  waiting_us += more.waiting_us;
  if (!more.last_failure.empty()) last_failure = more.last_failure;
  return *this;
}

}  // namespace kplan::jit
