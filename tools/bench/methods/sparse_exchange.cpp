// How it works: as in the paper and in the libraries named; requests and buffers are kept from run to run.
#include "tools/bench/methods/sparse_exchange.hpp"

#include <algorithm>

namespace kplan::bench {
namespace {

double* letter(Mail& mail, const Letters& l, std::size_t k) { return mail.outbox.as<double>().data() + l.firsts[k]; }

/// Receives a letter that has been probed.
void take(Mail& mail, MPI_Message& message, const MPI_Status& status) {
  int count = 0;
  MPI_Get_count(&status, MPI_DOUBLE, &count);
  MPI_Mrecv(mail.row(status.MPI_SOURCE), count, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
  mail.received.as<std::int32_t>()[static_cast<std::size_t>(status.MPI_SOURCE)] = count;
}

class Nbx {
 public:
  explicit Nbx(std::shared_ptr<Mail> mail) : mail_(std::move(mail)) {}
  void run() {
    Mail& mail = *mail_;
    const MPI_Comm comm = mail.team.comm;
    const Letters& l = mail.next();
    mail.clear_received();
    // A rank that has left the last exchange may send for this one while others are still in that one.
    const int tag = 100 + static_cast<int>(run_++ % 2);
    sends_.resize(l.targets.size());
    for (std::size_t k = 0; k < sends_.size(); ++k)
      MPI_Issend(letter(mail, l, k), l.counts[k], MPI_DOUBLE, l.targets[k], tag, comm, &sends_[k]);
    MPI_Request barrier = MPI_REQUEST_NULL;
    for (bool is_in_barrier = false;;) {
      int is_there = 0, is_done = 0;
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      MPI_Improbe(MPI_ANY_SOURCE, tag, comm, &is_there, &message, &status);
      if (is_there != 0) take(mail, message, status);
      if (is_in_barrier) {
        MPI_Test(&barrier, &is_done, MPI_STATUS_IGNORE);
        if (is_done != 0) return;
        continue;
      }
      MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &is_done, MPI_STATUSES_IGNORE);
      if (is_done == 0) continue;
      MPI_Ibarrier(comm, &barrier);
      is_in_barrier = true;
    }
  }

 private:
  std::shared_ptr<Mail> mail_;
  std::vector<MPI_Request> sends_;
  unsigned run_ = 0;
};

/// What is common to those that count first.
class Counting {
 public:
  explicit Counting(std::shared_ptr<Mail> mail)
      : mail_(std::move(mail)),
        sizes_(static_cast<std::size_t>(mail_->team.size)),
        offsets_(sizes_.size()),
        rows_(sizes_.size()) {
    for (std::size_t s = 0; s < rows_.size(); ++s)
      rows_[s] = static_cast<int>(static_cast<std::int64_t>(s) * mail_->longest);
  }

 protected:
  /// Tells everyone how much they get; received then holds what this rank gets.
  const Letters& count() {
    const Letters& l = mail_->next();
    std::ranges::fill(sizes_, 0);
    for (std::size_t k = 0; k < l.targets.size(); ++k) {
      sizes_[static_cast<std::size_t>(l.targets[k])] = l.counts[k];
      offsets_[static_cast<std::size_t>(l.targets[k])] = l.firsts[k];
    }
    MPI_Alltoall(sizes_.data(), 1, MPI_INT, mail_->received.data(), 1, MPI_INT, mail_->team.comm);
    return l;
  }
  std::shared_ptr<Mail> mail_;
  std::vector<int> sizes_, offsets_, rows_;
  std::vector<MPI_Request> requests_;
};

class ByAlltoall : Counting {
 public:
  using Counting::Counting;
  void run() {
    const Letters& l = count();
    const MPI_Comm comm = mail_->team.comm;
    const auto received = mail_->received.as<std::int32_t>();
    requests_.clear();
    for (std::size_t s = 0; s < received.size(); ++s) {
      const int sender = static_cast<int>(s);
      if (received[s] > 0)
        MPI_Irecv(mail_->row(sender), received[s], MPI_DOUBLE, sender, 102, comm, &requests_.emplace_back());
    }
    for (std::size_t k = 0; k < l.targets.size(); ++k)
      MPI_Isend(letter(*mail_, l, k), l.counts[k], MPI_DOUBLE, l.targets[k], 102, comm, &requests_.emplace_back());
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }
};

class ByAlltoallv : Counting {
 public:
  using Counting::Counting;
  void run() {
    count();
    MPI_Alltoallv(mail_->outbox.data(), sizes_.data(), offsets_.data(), MPI_DOUBLE, mail_->inbox.data(),
                  mail_->received.as<std::int32_t>().data(), rows_.data(), MPI_DOUBLE, mail_->team.comm);
  }
};

class ByReduceScatter : Counting {
 public:
  using Counting::Counting;
  void run() {
    const MPI_Comm comm = mail_->team.comm;
    const Letters& l = mail_->next();
    mail_->clear_received();
    std::ranges::fill(sizes_, 0);
    for (const std::int32_t target : l.targets) sizes_[static_cast<std::size_t>(target)] = 1;
    int senders = 0;
    MPI_Reduce_scatter_block(sizes_.data(), &senders, 1, MPI_INT, MPI_SUM, comm);
    const int tag = 104 + static_cast<int>(run_++ % 2);
    requests_.resize(l.targets.size());
    for (std::size_t k = 0; k < requests_.size(); ++k)
      MPI_Isend(letter(*mail_, l, k), l.counts[k], MPI_DOUBLE, l.targets[k], tag, comm, &requests_[k]);
    for (; senders > 0; --senders) {
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      MPI_Mprobe(MPI_ANY_SOURCE, tag, comm, &message, &status);
      take(*mail_, message, status);
    }
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }

 private:
  unsigned run_ = 0;
};

}  // namespace

Method nbx(std::shared_ptr<Mail> mail) { return method_of<Nbx>("NBX by hand", std::move(mail)); }
Method counted_by_alltoall(std::shared_ptr<Mail> mail) {
  return method_of<ByAlltoall>("counts by MPI_Alltoall, messages", std::move(mail));
}
Method counted_alltoallv(std::shared_ptr<Mail> mail) {
  return method_of<ByAlltoallv>("MPI_Alltoall, MPI_Alltoallv", std::move(mail));
}
Method counted_by_reduce_scatter(std::shared_ptr<Mail> mail) {
  return method_of<ByReduceScatter>("counts by reduce-scatter, probes", std::move(mail));
}

}  // namespace kplan::bench
