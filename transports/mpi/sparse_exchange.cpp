// How it works: letters to ranks that do not know of them are synchronous sends, which are complete when their receiver
// has matched them; where receivers know their sources, plain ones, for which a receive is under way (FirstMessage).
// The tag tells the kinds of letters apart, and MPI keeps those of one sender and tag in order. Bodies follow their
// letters as messages of their own.
#include "transports/mpi/sparse_exchange.hpp"

#include <utility>

#include "transports/codes.hpp"
#include "transports/mpi/barrier.hpp"
#include "transports/mpi/bodies.hpp"
#include "transports/mpi/inbox.hpp"
#include "transports/mpi/message_type.hpp"
#include "transports/mpi/tags.hpp"
#include "transports/nbx.hpp"

namespace kplan::transport::mpi_backend {
namespace {

/// Shorter ones are copied in less time than a message more takes.
constexpr std::size_t least_body = std::size_t{32} << 10;

class MpiMail final : public Mail, private RequestHolder {
 public:
  MpiMail(std::shared_ptr<World> world, int first_tag)
      : world_(std::move(world)),
        first_tag_(first_tag),
        barrier_(*world_, first_tag + exchange_tags::barrier),
        inbox_(*world_),
        bodies_(*world_, first_tag + exchange_tags::body) {
    world_->enter(this);
  }
  ~MpiMail() override { world_->end(this); }

  [[gnu::hot]] int rank() const override { return world_->rank(); }
  void require_usable() const override;
  void clear() override;
  void send(const OutgoingLetter& letter, LetterKind kind) override;
  void keep_memory(std::shared_ptr<const void> memory) override { memory_ = std::move(memory); }
  void keep(std::span<const std::byte> bytes) override { inbox_.take_own(bytes); }
  [[gnu::hot]] std::size_t least_body_bytes() const override { return least_body; }
  void place_body(int from, std::span<const std::span<std::byte>> regions) override { bodies_.place(from, regions); }
  void take_early_bodies() override { bodies_.take_early(); }
  [[gnu::hot]] bool are_bodies_done() override { return bodies_.are_done(); }
  bool are_taken() override;
  [[gnu::hot]] void expect(int source) override { inbox_.expect(source, tag(LetterKind::expected)); }
  [[gnu::hot]] bool match(int source, LetterKind kind) override {
    if (kind == LetterKind::expected) return inbox_.match_expected(source, tag(kind));
    return inbox_.match(source == any_rank ? MPI_ANY_SOURCE : source, tag(kind));
  }
  bool have_come() override;
  [[gnu::hot]] std::span<const ReceivedLetter> received() const override { return inbox_.received(); }
  [[gnu::hot]] void order() override { inbox_.order(); }
  [[gnu::hot]] void end() override { is_in_exchange_ = false; }
  bool try_enter_barrier() override { return barrier_.try_enter(); }
  bool is_barrier_passed() override { return barrier_.is_passed(); }
  void name_awaited(std::vector<int>& ranks) const override;

 private:
  void send(int to, std::span<const std::byte> bytes, LetterKind kind);
  int tag(LetterKind kind) const { return first_tag_ + exchange_tags::first_kind + static_cast<int>(kind); }
  void close() override;
  void leak() override {
    inbox_.leak();
    bodies_.leak();
    mpi_backend::leak(std::move(memory_));
  }

  std::shared_ptr<World> world_;
  int first_tag_;
  Barrier barrier_;
  Inbox inbox_;
  Bodies bodies_;
  bool is_in_exchange_ = false;
  bool are_sent_ = true;  // sends_
  std::vector<MPI_Request> sends_;
  std::vector<int> receivers_;          // of sends_
  std::shared_ptr<const void> memory_;  // of what is sent
};

[[gnu::hot]] void MpiMail::require_usable() const {
  if (!world_->is_open())
    throw TransportError(codes::unusable, "a sparse exchange after MPI was finalised; finalise later");
}

[[gnu::hot]] void MpiMail::clear() {
  inbox_.clear();
  sends_.clear();
  receivers_.clear();
  are_sent_ = true;
  is_in_exchange_ = true;
}

[[gnu::hot]] void MpiMail::send(const OutgoingLetter& letter, LetterKind kind) {
  if (!letter.body.empty()) bodies_.send(letter.to, letter.body);
  if (kind != LetterKind::expected) return send(letter.to, letter.bytes, kind);
  const FirstMessage message(world_->limits());
  const std::size_t first = message.bytes_of(letter.bytes.size());
  send(letter.to, letter.bytes.first(first), kind);
  if (message.has_rest(first)) send(letter.to, letter.bytes.subspan(first), kind);
}

[[gnu::hot]] void MpiMail::send(int to, std::span<const std::byte> bytes, LetterKind kind) {
  const auto send = kind == LetterKind::expected ? MPI_Isend : MPI_Issend;
  const MessageType message(bytes.size(), world_->limits().max_count);
  receivers_.push_back(to);
  sends_.push_back(MPI_REQUEST_NULL);
  check(send(bytes.data(), message.count(), message.type(), to, tag(kind), world_->comm(), &sends_.back()),
        "MPI_Issend");
  are_sent_ = false;
}

[[gnu::hot]] bool MpiMail::are_taken() {
  if (are_sent_) return true;
  int are_sent = 0;
  check(MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &are_sent, MPI_STATUSES_IGNORE), "MPI_Testall");
  world_->note_driven();
  are_sent_ = are_sent != 0;
  return are_sent_;
}

[[gnu::hot]] bool MpiMail::have_come() {
  inbox_.finish();
  return !inbox_.is_arriving();
}

void MpiMail::name_awaited(std::vector<int>& ranks) const {
  if (!world_->is_open()) return;
  ranks = inbox_.arriving_from();
  bodies_.name_awaited(ranks);
  for (std::size_t i = 0; i < sends_.size(); ++i) {
    int is_sent = 0;
    check(MPI_Request_get_status(sends_[i], &is_sent, MPI_STATUS_IGNORE), "MPI_Request_get_status");
    if (is_sent == 0) ranks.push_back(receivers_[i]);
  }
  if (const std::optional<int> awaited = barrier_.awaited()) ranks.push_back(*awaited);
}

void MpiMail::close() {
  if (is_in_exchange_) world_->taint();  // letters may be left, or come later
  std::vector<MPI_Request> unfinished = barrier_.close();
  for (MPI_Request& request : sends_)
    if (!is_complete(*world_, &request)) unfinished.push_back(request);
  if (!unfinished.empty()) world_->adopt(std::move(unfinished), memory_);
  inbox_.close();
  bodies_.close(memory_);
}

}  // namespace

std::unique_ptr<SparseExchange> sparse_exchange(std::shared_ptr<World> world, int first_tag) {
  const std::shared_ptr<InFlightList> in_flight = world->in_flight();
  const std::uint64_t first = world->limits().first_exchange;
  return std::make_unique<Nbx>(std::make_unique<MpiMail>(std::move(world), first_tag), in_flight, first);
}

}  // namespace kplan::transport::mpi_backend
