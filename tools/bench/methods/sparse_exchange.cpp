// How it works: as in the paper and in the libraries named; requests and buffers are kept from run to run, and what
// comes is unpacked while others are waited for.
#include "tools/bench/methods/sparse_exchange.hpp"

#include <algorithm>

namespace kplan::bench {
namespace {

/// Sends letter k; a synchronous message is one that has come when it has been sent.
void send(MailMessages& messages, const Letters& l, std::size_t k, int tag, MPI_Comm comm, MPI_Request& request,
          bool is_synchronous = false) {
  messages.pack(l, k);
  (is_synchronous ? MPI_Issend : MPI_Isend)(messages.outgoing() + messages.first(l, k), messages.length(l, k),
                                            MPI_DOUBLE, l.targets[k], tag, comm, &request);
}

/// Receives a letter that has been probed.
void take(MailMessages& messages, MPI_Message& message, const MPI_Status& status) {
  int length = 0;
  MPI_Get_count(&status, MPI_DOUBLE, &length);
  MPI_Mrecv(messages.arriving() + messages.place(status.MPI_SOURCE), length, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
  messages.unpack(status.MPI_SOURCE, length);
}

class Nbx {
 public:
  explicit Nbx(std::shared_ptr<Mail> mail) : mail_(mail), messages_(std::move(mail)) {}
  void run() {
    Mail& mail = *mail_;
    const MPI_Comm comm = mail.team.comm;
    const Letters& l = mail.next();
    mail.clear_received();
    // A rank that has left the last exchange may send for this one while others are still in that one.
    const int tag = 100 + static_cast<int>(run_++ % 2);
    sends_.resize(l.targets.size());
    for (std::size_t k = 0; k < sends_.size(); ++k) send(messages_, l, k, tag, comm, sends_[k], true);
    MPI_Request barrier = MPI_REQUEST_NULL;
    for (bool is_in_barrier = false;;) {
      int is_there = 0, is_done = 0;
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      MPI_Improbe(MPI_ANY_SOURCE, tag, comm, &is_there, &message, &status);
      if (is_there != 0) take(messages_, message, status);
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
  MailMessages messages_;
  std::vector<MPI_Request> sends_;
  unsigned run_ = 0;
};

/// What is common to those that count first.
class Counting {
 public:
  explicit Counting(std::shared_ptr<Mail> mail)
      : mail_(mail),
        messages_(std::move(mail)),
        sizes_(static_cast<std::size_t>(mail_->team.size)),
        coming_(sizes_.size()) {}

 protected:
  /// Tells everyone how long their messages are, and is told how long those are that come.
  const Letters& count() {
    const Letters& l = mail_->next();
    mail_->clear_received();
    std::ranges::fill(sizes_, 0);
    for (std::size_t k = 0; k < l.targets.size(); ++k)
      sizes_[static_cast<std::size_t>(l.targets[k])] = messages_.length(l, k);
    MPI_Alltoall(sizes_.data(), 1, MPI_INT, coming_.data(), 1, MPI_INT, mail_->team.comm);
    return l;
  }
  std::shared_ptr<Mail> mail_;
  MailMessages messages_;
  std::vector<int> sizes_, coming_;
  std::vector<MPI_Request> requests_;
};

class ByAlltoall : Counting {
 public:
  using Counting::Counting;
  void run() {
    const Letters& l = count();
    const MPI_Comm comm = mail_->team.comm;
    requests_.clear();
    senders_.clear();
    for (int sender = 0; sender < mail_->team.size; ++sender) {
      const int length = coming_[static_cast<std::size_t>(sender)];
      if (length == 0) continue;
      senders_.push_back(sender);
      MPI_Irecv(messages_.arriving() + messages_.place(sender), length, MPI_DOUBLE, sender, 102, comm,
                &requests_.emplace_back());
    }
    for (std::size_t k = 0; k < l.targets.size(); ++k) send(messages_, l, k, 102, comm, requests_.emplace_back());
    for (std::size_t left = senders_.size(); left > 0; --left) {
      int at = 0;
      MPI_Waitany(static_cast<int>(senders_.size()), requests_.data(), &at, MPI_STATUS_IGNORE);
      const int sender = senders_[static_cast<std::size_t>(at)];
      messages_.unpack(sender, coming_[static_cast<std::size_t>(sender)]);
    }
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }

 private:
  std::vector<int> senders_;
};

class ByAlltoallv : Counting {
 public:
  explicit ByAlltoallv(std::shared_ptr<Mail> mail)
      : Counting(std::move(mail)), offsets_(sizes_.size()), places_(sizes_.size()) {
    for (std::size_t s = 0; s < places_.size(); ++s) places_[s] = messages_.place(static_cast<int>(s));
  }
  void run() {
    const Letters& l = count();
    for (std::size_t k = 0; k < l.targets.size(); ++k) {
      messages_.pack(l, k);
      offsets_[static_cast<std::size_t>(l.targets[k])] = messages_.first(l, k);
    }
    MPI_Alltoallv(messages_.outgoing(), sizes_.data(), offsets_.data(), MPI_DOUBLE, messages_.arriving(),
                  coming_.data(), places_.data(), MPI_DOUBLE, mail_->team.comm);
    for (std::size_t s = 0; s < coming_.size(); ++s)
      if (coming_[s] > 0) messages_.unpack(static_cast<int>(s), coming_[s]);
  }

 private:
  std::vector<int> offsets_, places_;
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
    for (std::size_t k = 0; k < requests_.size(); ++k) send(messages_, l, k, tag, comm, requests_[k]);
    for (; senders > 0; --senders) {
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      MPI_Mprobe(MPI_ANY_SOURCE, tag, comm, &message, &status);
      take(messages_, message, status);
    }
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }

 private:
  unsigned run_ = 0;
};

class WithRoom {
 public:
  explicit WithRoom(std::shared_ptr<Mail> mail)
      : mail_(mail),
        messages_(std::move(mail)),
        sends_(static_cast<std::size_t>(mail_->team.size - 1)),
        receives_(sends_.size()) {
    for (int sender = 0; sender < mail_->team.size; ++sender) {
      if (sender == mail_->team.rank) continue;
      MPI_Recv_init(messages_.arriving() + messages_.place(sender), messages_.room(), MPI_DOUBLE, sender, 106,
                    mail_->team.comm, &receives_[senders_.size()]);
      senders_.push_back(sender);
    }
  }
  WithRoom(const WithRoom&) = delete;
  WithRoom& operator=(const WithRoom&) = delete;
  ~WithRoom() {
    for (MPI_Request& r : receives_) MPI_Request_free(&r);
  }
  void run() {
    const Letters& l = mail_->next();
    MPI_Startall(static_cast<int>(receives_.size()), receives_.data());
    for (std::size_t k = 0; k < l.targets.size(); ++k) send(messages_, l, k, 106, mail_->team.comm, sends_[k]);
    for (std::size_t left = receives_.size(); left > 0; --left) {
      int at = 0, length = 0;
      MPI_Status status;
      MPI_Waitany(static_cast<int>(receives_.size()), receives_.data(), &at, &status);
      MPI_Get_count(&status, MPI_DOUBLE, &length);
      messages_.unpack(senders_[static_cast<std::size_t>(at)], length);
    }
    MPI_Waitall(static_cast<int>(sends_.size()), sends_.data(), MPI_STATUSES_IGNORE);
  }

 private:
  std::shared_ptr<Mail> mail_;
  MailMessages messages_;
  std::vector<MPI_Request> sends_, receives_;
  std::vector<int> senders_;  ///< in the order of the receives
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
Method received_with_room(std::shared_ptr<Mail> mail) {
  return method_of<WithRoom>("receives with room, messages", std::move(mail));
}

}  // namespace kplan::bench
