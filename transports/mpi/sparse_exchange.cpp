// How it works: NBX (Hoefler, Siebert, Lumsdaine, Scalable Communication Protocols for Dynamic Sparse Data Exchange,
// PPoPP 2010, section 3.4; Kanor, figure 3). Letters are synchronous sends, which are complete when their receiver has
// matched them; a rank whose sends are complete enters a barrier that does not block; when that is passed, every letter
// of every rank has been matched, and those to this rank are only to be received to their end.
//
// The parity of an exchange's number in the tag keeps exchanges apart. A rank begins exchange n + 1 after it has passed
// barrier n, for which every rank had to enter barrier n, with its letters of n matched. So while any rank is in n + 1,
// no letter of n is on its way any more, all ranks are in n or in n + 1, and none is in n + 2, whose parity is that of
// n: whoever looks for letters of one parity finds those of its own exchange only.
//
// Where receivers know their sources, letters are plain sends with a third tag, and a rank takes from each of its
// sources one, the first that it has not taken yet: MPI keeps those of one sender in order, however many there are.
#include "transports/mpi/sparse_exchange.hpp"

#include <algorithm>
#include <cassert>
#include <exception>
#include <utility>

#include "transports/codes.hpp"
#include "transports/mpi/barrier.hpp"
#include "transports/mpi/inbox.hpp"
#include "transports/mpi/message_type.hpp"
#include "transports/mpi/tags.hpp"

namespace kplan::transport::mpi_backend {
namespace {

class MpiExchange final : public SparseExchange, private RequestHolder, private InFlight {
 public:
  MpiExchange(std::shared_ptr<World> world, int first_tag)
      : world_(std::move(world)),
        first_tag_(first_tag),
        number_(world_->limits().first_exchange - 1),
        barrier_(*world_, first_tag + exchange_tags::barrier),
        inbox_(*world_) {
    world_->enter(this);
  }
  ~MpiExchange() override;

  void begin(std::span<const OutgoingLetter> letters) override;
  void begin(std::span<const OutgoingLetter> letters, std::span<const int> sources) override;
  bool is_complete() override;
  std::span<const ReceivedLetter> received() const override { return inbox_.received(); }
  std::vector<int> waits_for() const override;

 private:
  int letter_tag() const;
  void enter();
  void start(std::span<const OutgoingLetter> letters);
  void move();
  void move_on() override;
  void match_letters();
  bool is_at_end();
  void close() override;

  std::shared_ptr<World> world_;
  int first_tag_;
  std::uint64_t number_;  // of the last exchange begun whose receivers do not know their sources
  Barrier barrier_;
  Inbox inbox_;
  bool is_complete_ = true;
  bool has_failed_ = false;
  bool knows_sources_ = false;  // in the exchange under way
  bool is_in_barrier_ = false;
  bool was_asked_ = false;  // since the world last moved it on
  std::vector<MPI_Request> sends_;
  std::vector<int> receivers_;    // of sends_
  std::vector<int> outstanding_;  // sources whose letter was not matched
};

int MpiExchange::letter_tag() const {
  return first_tag_ +
         (knows_sources_ ? exchange_tags::expected : exchange_tags::unexpected + static_cast<int>(number_ % 2));
}

/// A call that does not reach its end may have lost a letter: none may follow it.
void MpiExchange::enter() {
  if (has_failed_)
    throw TransportError(codes::unusable, "a sparse exchange after one of its calls failed; make a new one");
  if (!world_->is_open())
    throw TransportError(codes::unusable, "a sparse exchange after MPI was finalised; finalise later");
  has_failed_ = true;
}

void MpiExchange::begin(std::span<const OutgoingLetter> letters) {
  enter();
  ++number_;
  knows_sources_ = false;
  start(letters);
  has_failed_ = false;
}

void MpiExchange::begin(std::span<const OutgoingLetter> letters, std::span<const int> sources) {
  enter();
  knows_sources_ = true;
  outstanding_.assign(sources.begin(), sources.end());
  start(letters);
  has_failed_ = false;
}

void MpiExchange::start(std::span<const OutgoingLetter> letters) {
  assert(is_complete_);
  inbox_.clear();
  sends_.clear();
  receivers_.clear();
  is_in_barrier_ = false;
  is_complete_ = false;
  world_->add_in_flight(this);
  const auto send = knows_sources_ ? MPI_Isend : MPI_Issend;
  for (const OutgoingLetter& letter : letters) {
    if (letter.to == world_->rank()) {
      inbox_.take_own(letter.bytes);
      std::erase(outstanding_, world_->rank());
      continue;
    }
    const MessageType message(letter.bytes.size(), world_->limits().max_count);
    receivers_.push_back(letter.to);
    sends_.push_back(MPI_REQUEST_NULL);
    check(send(letter.bytes.data(), message.count(), message.type(), letter.to, letter_tag(), world_->comm(),
               &sends_.back()),
          "MPI_Issend");
  }
}

bool MpiExchange::is_complete() {
  if (is_complete_) return true;
  was_asked_ = true;
  move();
  return is_complete_;
}

void MpiExchange::move_on() {
  if (!std::exchange(was_asked_, false) && !has_failed_) move();
}

void MpiExchange::move() {
  enter();
  match_letters();
  inbox_.finish();
  if (is_at_end()) {
    inbox_.order();
    world_->remove_in_flight(this);
    is_complete_ = true;
  }
  world_->note_driven();
  has_failed_ = false;
}

void MpiExchange::match_letters() {
  if (knows_sources_) {
    std::erase_if(outstanding_, [this](int source) { return inbox_.match(source, letter_tag()); });
  } else {
    while (inbox_.match(MPI_ANY_SOURCE, letter_tag())) {
    }
  }
}

bool MpiExchange::is_at_end() {
  int are_sent = 0;
  check(MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &are_sent, MPI_STATUSES_IGNORE), "MPI_Testall");
  if (are_sent == 0) return false;
  if (knows_sources_) return outstanding_.empty() && !inbox_.is_arriving();
  if (!is_in_barrier_) is_in_barrier_ = barrier_.try_enter();
  return is_in_barrier_ && barrier_.is_passed() && !inbox_.is_arriving();
}

std::vector<int> MpiExchange::waits_for() const {
  if (is_complete_ || !world_->is_open()) return {};
  std::vector<int> ranks = inbox_.arriving_from();
  for (std::size_t i = 0; i < sends_.size(); ++i) {
    int is_sent = 0;
    check(MPI_Request_get_status(sends_[i], &is_sent, MPI_STATUS_IGNORE), "MPI_Request_get_status");
    if (is_sent == 0) ranks.push_back(receivers_[i]);
  }
  if (knows_sources_) ranks.insert(ranks.end(), outstanding_.begin(), outstanding_.end());
  if (const std::optional<int> awaited = barrier_.awaited()) ranks.push_back(*awaited);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

void MpiExchange::close() {
  world_->remove_in_flight(this);
  if (!is_complete_) world_->taint();  // letters may be left, or come later
  std::vector<MPI_Request> unfinished = barrier_.close();
  for (MPI_Request& request : sends_) {
    int is_done = 0;
    check(MPI_Test(&request, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
    if (is_done == 0) unfinished.push_back(request);
  }
  if (!unfinished.empty()) world_->adopt(std::move(unfinished), {});
  inbox_.close();
}

MpiExchange::~MpiExchange() {
  if (!world_->is_open()) return;
  world_->leave(this);
  try {
    close();
  } catch (const std::exception&) {
    world_->taint();
    inbox_.leak();  // and nobody is there to be told
  }
}

}  // namespace

std::unique_ptr<SparseExchange> sparse_exchange(std::shared_ptr<World> world, int first_tag) {
  return std::make_unique<MpiExchange>(std::move(world), first_tag);
}

}  // namespace kplan::transport::mpi_backend
