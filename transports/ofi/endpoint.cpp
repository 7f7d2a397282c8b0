// How it works: an operation that finds no room waits, and is tried again at each poll: receives in turn, and what goes
// to each rank in a queue of its own, where the first in vain ends the turn. So a peer that is not connected yet does
// not hold up the others, and what goes to one rank keeps its order: receivers need not put early notes aside. A
// completion brings back the context, which knows its operation; remote writes come as completions without one.
#include "transports/ofi/endpoint.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kplan/error.hpp"
#include "transports/codes.hpp"

namespace kplan::transport::ofi_backend {
namespace {

constexpr std::size_t most_turns = 16;  // in a poll
constexpr int most_vain_receives = 16;
constexpr int most_batches = 8;

}  // namespace

Endpoint::Endpoint(Provider provider) : provider_(std::move(provider)) {
  fi_info* const hardware = provider_.info.get();
  fid_fabric* fabric = nullptr;
  check(library().fabric(hardware->fabric_attr, &fabric, nullptr), "fi_fabric");
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  check(fi_domain(fabric, hardware, &domain, nullptr), "fi_domain");
  domain_.reset(domain);
  fid_ep* ep = nullptr;
  check(fi_endpoint(domain, hardware, &ep, nullptr), "fi_endpoint");
  ep_.reset(ep);
  fi_av_attr table{};
  table.type = hardware->domain_attr->av_type;
  fid_av* av = nullptr;
  check(fi_av_open(domain, &table, &av, nullptr), "fi_av_open");
  av_.reset(av);
  for (Open<fid_cq>* queue : {&sent_, &received_}) {
    fi_cq_attr attributes{};
    attributes.format = FI_CQ_FORMAT_DATA;
    attributes.wait_obj = FI_WAIT_NONE;
    fid_cq* made = nullptr;
    check(fi_cq_open(domain, &attributes, &made, nullptr), "fi_cq_open");
    queue->reset(made);
  }
}

void Endpoint::rename(const std::string& name) {
  std::string text = name;
  check(fi_setname(&ep_->fid, text.data(), text.size() + 1), "fi_setname");
}

void Endpoint::open() {
  check(fi_ep_bind(ep_.get(), &av_->fid, 0), "fi_ep_bind");
  check(fi_ep_bind(ep_.get(), &sent_->fid, FI_TRANSMIT), "fi_ep_bind");
  check(fi_ep_bind(ep_.get(), &received_->fid, FI_RECV), "fi_ep_bind");
  check(fi_enable(ep_.get()), "fi_enable");
}

std::string Endpoint::name() const {
  std::string out(256, '\0');
  std::size_t bytes = out.size();
  int status = fi_getname(&ep_->fid, out.data(), &bytes);
  out.resize(bytes);
  if (status == -FI_ETOOSMALL) status = fi_getname(&ep_->fid, out.data(), &bytes);
  check(status, "fi_getname");
  return out;
}

void Endpoint::connect(const std::vector<std::string>& names) {
  sends_.resize(names.size());
  for (const std::string& name : names) {
    addresses_.push_back(FI_ADDR_UNSPEC);
    const int inserted = fi_av_insert(av_.get(), name.data(), 1, &addresses_.back(), 0, nullptr);
    check(inserted, "fi_av_insert");
    if (inserted != 1) throw_failed(-FI_EADDRNOTAVAIL, "fi_av_insert");
  }
}

fid_mr* Endpoint::register_memory(const void* memory, std::size_t bytes, std::uint64_t access) {
  // Keys of our own are never used twice, so that a late write cannot meet new memory.
  const std::uint64_t key = provider_.wants(FI_MR_PROV_KEY) ? 0 : ++last_key_;
  fid_mr* made = nullptr;
  check(fi_mr_reg(domain_.get(), memory, bytes, access, 0, key, 0, &made, nullptr), "fi_mr_reg");
  Open<fid_mr> region(made);
  if (provider_.wants(FI_MR_ENDPOINT)) {
    check(fi_mr_bind(made, &ep_->fid, 0), "fi_mr_bind");
    check(fi_mr_enable(made), "fi_mr_enable");
  }
  regions_.insert(made);
  return region.release();
}

void Endpoint::unregister(fid_mr* region) {
  if (regions_.erase(region) > 0) (void)fi_close(&region->fid);
}

Operation& Endpoint::operation_of(void* context) { return *static_cast<Operation::Token*>(context)->self; }

void Endpoint::Queue::push(Operation& operation) {
  operation.next_ = nullptr;
  (first == nullptr ? first : last->next_) = &operation;
  last = &operation;
}

void Endpoint::Queue::push_front(Operation& operation) {
  operation.next_ = first;
  if (first == nullptr) last = &operation;
  first = &operation;
}

Operation& Endpoint::Queue::pop() {
  Operation& out = *first;
  first = out.next_;
  return out;
}

void Endpoint::start(Operation& operation) {
  operation.is_under_way_ = true;
  const int rank = operation.peer();
  Queue& queue = rank == anybody ? receives_ : sends_[static_cast<std::size_t>(rank)];
  if ((rank == anybody || queue.first == nullptr) && submit(operation)) return;
  queue.push(operation);
  if (rank != anybody && !std::exchange(queue.has_turn, true)) turns_.push_back(rank);
}

/// Whether there was room for it.
bool Endpoint::submit(Operation& operation) {
  const ssize_t status = operation.post();
  if (status == -FI_EAGAIN || status == -FI_ENOMEM) return false;  // the latter of shm's pools
  if (status < 0) fail(operation, words_of(status));
  else if (status > 0) finish(operation);
  return true;
}

void Endpoint::finish(Operation& operation) {
  operation.is_under_way_ = false;
  operation.ended();
}

void Endpoint::fail(Operation& operation, const std::string& text) {
  operation.is_under_way_ = false;
  failures_.emplace(operation.peer_, Failure{text, Clock::now()});
  operation.failed();
}

/// Posts those that go to one rank, while there is room. Whether there was.
bool Endpoint::post_waiting(Queue& queue) {
  bool is_any = false;
  while (queue.first != nullptr) {
    Operation& operation = queue.pop();
    if (!submit(operation)) {
      queue.push_front(operation);
      break;
    }
    is_any = true;
  }
  return is_any;
}

/// A few of those that wait to receive, the rest at the next polls: where shm has room for none, it still has for one
/// whose message is there, which makes some.
bool Endpoint::post_receives() {
  bool is_any = false;
  const Operation* const last = receives_.last;
  for (int vain = 0; receives_.first != nullptr && vain < most_vain_receives;) {
    Operation& operation = receives_.pop();
    const bool is_last = &operation == last;
    if (submit(operation)) {
      is_any = true;
    } else {
      receives_.push(operation);
      ++vain;
    }
    if (is_last) break;
  }
  return is_any;
}

bool Endpoint::retry() {
  bool is_any = post_receives();
  for (std::size_t turns = std::min(turns_.size(), most_turns); turns > 0; --turns) {
    const int rank = turns_.front();
    Queue& queue = sends_[static_cast<std::size_t>(rank)];
    turns_.pop_front();
    queue.has_turn = false;
    is_any = post_waiting(queue) || is_any;
    if (queue.first != nullptr && !std::exchange(queue.has_turn, true)) turns_.push_back(rank);
  }
  return is_any;
}

bool Endpoint::poll() {
  bool is_any = poll(received_.get());
  is_any = poll(sent_.get()) || is_any;
  if (receives_.first != nullptr || !turns_.empty()) is_any = retry() || is_any;
  return is_any;
}

bool Endpoint::poll(fid_cq* queue) {
  std::array<fi_cq_data_entry, 32> entries;
  for (int batch = 0; batch < most_batches; ++batch) {
    const ssize_t count = fi_cq_read(queue, entries.data(), entries.size());
    if (count == -FI_EAGAIN || count == 0) return batch > 0;
    if (count == -FI_EAVAIL) {
      take_error(queue);
      continue;
    }
    check(count, "fi_cq_read");
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const fi_cq_data_entry& entry = entries[i];
      if ((entry.flags & FI_REMOTE_CQ_DATA) != 0) listener_->notified(static_cast<std::uint32_t>(entry.data));
      else finish(operation_of(entry.op_context));
    }
    if (static_cast<std::size_t>(count) < entries.size()) return true;
  }
  return true;
}

void Endpoint::take_error(fid_cq* queue) {
  fi_cq_err_entry error{};
  const ssize_t status = fi_cq_readerr(queue, &error, 0);
  if (status == -FI_EAGAIN) return;
  check(status, "fi_cq_readerr");
  char buffer[256] = "";
  const char* const more = fi_cq_strerror(queue, error.prov_errno, error.err_data, buffer, sizeof buffer);
  const std::string text =
      words_of(-error.err) + (more != nullptr && *more != '\0' ? std::string(" (") + more + ")" : "");
  if (error.op_context != nullptr) return fail(operation_of(error.op_context), text);
  failures_.emplace(anybody, Failure{text, Clock::now()});
}

void Endpoint::close() {
  if (provider_.wants(FI_MR_ENDPOINT)) {  // an endpoint that has regions cannot be closed
    while (!regions_.empty()) unregister(*regions_.begin());
  }
  ep_.reset();
  receives_ = {};
  std::ranges::fill(sends_, Queue{});
  turns_.clear();
}

}  // namespace kplan::transport::ofi_backend
