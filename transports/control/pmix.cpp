// How it works: rank 0 puts its text under a key, and the others get it, which waits until it is there; no fence, from
// which Open MPI 4.1 now and then does not let a process go that has had sessions before. The library is loaded and its
// few functions are looked up, so that programs which never start this way do not depend on it. The session ends when
// the ranks have met: a launcher takes a process that leaves without ending it for one that failed.
#include "transports/control/pmix.hpp"

#include <dlfcn.h>
#include <pmix.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "transports/codes.hpp"

namespace kplan::transport::control {
namespace {

/// What is used of libpmix.
struct Library {
  decltype(&PMIx_Init) init = nullptr;
  decltype(&PMIx_Finalize) finalize = nullptr;
  decltype(&PMIx_Put) put = nullptr;
  decltype(&PMIx_Commit) commit = nullptr;
  decltype(&PMIx_Get) get = nullptr;
  decltype(&PMIx_Error_string) error_string = nullptr;

  /// Whether all is there.
  bool load() {
    void* const file = ::dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
    if (file == nullptr) return false;
    const auto find = [file](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(file, name));
      return function != nullptr;
    };
    return find(init, "PMIx_Init") && find(finalize, "PMIx_Finalize") && find(put, "PMIx_Put") &&
           find(commit, "PMIx_Commit") && find(get, "PMIx_Get") && find(error_string, "PMIx_Error_string");
  }
};

pmix_proc_t process(const pmix_proc_t& like, pmix_rank_t rank) {
  pmix_proc_t out = like;
  out.rank = rank;
  return out;
}

class Session final : public Pmix {
 public:
  Session(Library library, const pmix_proc_t& self) : library_(library), self_(self) {}
  ~Session() override { (void)library_.finalize(nullptr, 0); }

  int rank() const override { return static_cast<int>(self_.rank); }
  int size() const override;
  std::string tell(const std::string& of_rank_0, Clock::time_point deadline) override;

 private:
  void check(pmix_status_t status, const char* call) const {
    if (status == PMIX_SUCCESS) return;
    throw TransportError(status == PMIX_ERR_TIMEOUT ? codes::not_come : codes::control_failed,
                         "rank " + std::to_string(rank()) + ": " + call + " failed: " + library_.error_string(status) +
                             "; start all ranks, or raise KPLAN_TIMEOUT");
  }

  Library library_;
  pmix_proc_t self_;
};

int Session::size() const {
  pmix_value_t* value = nullptr;
  const pmix_proc_t job = process(self_, PMIX_RANK_WILDCARD);
  check(library_.get(&job, PMIX_JOB_SIZE, nullptr, 0, &value), "PMIx_Get of the number of ranks");
  const auto size = static_cast<int>(value->data.uint32);
  std::free(value);
  return size;
}

std::string Session::tell(const std::string& of_rank_0, Clock::time_point deadline) {
  static std::atomic<int> worlds{0};  // the same on all ranks, since making one is collective
  const std::string key = "kplan.hub." + std::to_string(worlds++);
  if (rank() == 0) {
    std::string text = of_rank_0;
    pmix_value_t value{};
    value.type = PMIX_STRING;
    value.data.string = text.data();
    check(library_.put(PMIX_GLOBAL, key.c_str(), &value), "PMIx_Put");
    check(library_.commit(), "PMIx_Commit");
    return of_rank_0;
  }
  const pmix_proc_t root = process(self_, 0);
  pmix_value_t* value = nullptr;
  for (;;) {
    pmix_info_t timeout{};
    std::strncpy(timeout.key, PMIX_TIMEOUT, PMIX_MAX_KEYLEN);
    timeout.value.type = PMIX_INT;
    const auto left = std::chrono::ceil<std::chrono::seconds>(deadline - Clock::now()).count();
    timeout.value.data.integer = static_cast<int>(std::clamp<long long>(left, 1, 1 << 30));
    const pmix_status_t status = library_.get(&root, key.c_str(), &timeout, 1, &value);
    if (status == PMIX_SUCCESS) break;
    // Where rank 0 has told of an earlier world, the server may take that for all that it will tell.
    if (status != PMIX_ERR_NOT_FOUND || Clock::now() >= deadline) check(status, "PMIx_Get of what rank 0 tells");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::string text = value->type == PMIX_STRING && value->data.string != nullptr ? value->data.string : "";
  if (value->type == PMIX_STRING) std::free(value->data.string);
  std::free(value);
  return text;
}

}  // namespace

std::unique_ptr<Pmix> Pmix::connect() {
  Library library;
  pmix_proc_t self{};
  if (!library.load() || library.init(&self, nullptr, 0) != PMIX_SUCCESS) return nullptr;
  return std::make_unique<Session>(library, self);
}

}  // namespace kplan::transport::control
