// How it works: letters come by post into the object's mailbox, whether it has begun the exchange or not; when it takes
// one to an unknowing rank, it tells the sender so, which stands for a synchronous send. Bytes that follow a large
// letter are waited for at the end.
#include "transports/ofi/sparse_exchange.hpp"

#include <algorithm>
#include <utility>

namespace kplan::transport::ofi_backend {
namespace {

class OfiMail final : public Mail {
 public:
  explicit OfiMail(std::shared_ptr<World> world)
      : world_(std::move(world)),
        number_(world_->mailboxes().open()),
        box_(world_->mailboxes().at(number_)),
        ring_{world_->rank(), world_->size()},
        round_(ring_.rounds()) {}
  ~OfiMail() override;

  int rank() const override { return world_->rank(); }
  void require_usable() const override {}
  void clear() override;
  void send(const OutgoingLetter& letter, LetterKind kind) override;
  void keep_memory(std::shared_ptr<const void> memory) override { memory_ = std::move(memory); }
  void keep(std::span<const std::byte> bytes) override;
  bool are_taken() override;
  bool match(int source, LetterKind kind) override;
  bool have_come() override;
  std::span<const ReceivedLetter> received() const override { return received_; }
  void order() override;
  bool try_enter_barrier() override;
  bool is_barrier_passed() override;
  void name_awaited(std::vector<int>& ranks) const override;

 private:
  void send_token() {
    world_->post().send(ring_.receiver(round_), Word::barrier, number_, static_cast<std::uint64_t>(round_));
  }

  std::shared_ptr<World> world_;
  std::uint32_t number_;
  Mailbox& box_;
  Dissemination ring_;
  int round_;  // of the barrier; past the last one when it is passed
  std::vector<std::unique_ptr<Parcel>> parcels_;
  std::size_t used_parcels_ = 0;        // of them, by the exchange under way
  std::shared_ptr<const void> memory_;  // of what is sent
  std::vector<LetterPtr> letters_;      // matched, in that order
  std::vector<std::size_t> arriving_;   // places there
  std::vector<ReceivedLetter> received_;
};

OfiMail::~OfiMail() {
  clear();
  for (std::unique_ptr<Parcel>& parcel : parcels_) world_->adopt(std::move(parcel), memory_);
  world_->mailboxes().close(number_);
}

void OfiMail::clear() {
  received_.clear();
  arriving_.clear();
  for (LetterPtr& letter : letters_) world_->mailboxes().discard(std::move(letter));
  letters_.clear();
  used_parcels_ = 0;
}

void OfiMail::send(const OutgoingLetter& letter, LetterKind kind) {
  if (used_parcels_ == parcels_.size()) parcels_.push_back(std::make_unique<Parcel>(world_->post(), letter.to));
  if (kind != LetterKind::expected) box_.count_untaken(letter.to, 1);
  world_->post().send(letter.to, Word::letter, number_, static_cast<std::uint64_t>(kind), letter.bytes,
                      *parcels_[used_parcels_]);
  if (!parcels_[used_parcels_]->is_sent()) ++used_parcels_;
}

void OfiMail::keep(std::span<const std::byte> bytes) {
  LetterPtr letter = world_->mailboxes().pool().copy(bytes, rank());
  letter->is_arriving = false;
  received_.push_back(letter->view());
  letters_.push_back(std::move(letter));
}

bool OfiMail::are_taken() {
  if (box_.untaken() > 0) return false;
  return std::all_of(parcels_.begin(), parcels_.begin() + static_cast<std::ptrdiff_t>(used_parcels_),
                     [](const auto& parcel) { return parcel->is_sent(); });
}

bool OfiMail::match(int source, LetterKind kind) {
  LetterPtr letter = box_.take(source, kind);
  if (!letter) return false;
  if (kind != LetterKind::expected) world_->post().send(letter->from, Word::taken, number_);
  arriving_.push_back(letters_.size());
  letters_.push_back(std::move(letter));
  return true;
}

bool OfiMail::have_come() {
  std::erase_if(arriving_, [this](std::size_t place) {
    const Letter& letter = *letters_[place];
    if (!letter.is_arriving) received_.push_back(letter.view());
    return !letter.is_arriving;
  });
  return arriving_.empty();
}

void OfiMail::order() {
  received_.clear();  // a large letter may have come later than a smaller one behind it
  for (const LetterPtr& letter : letters_) received_.push_back(letter->view());
  order_by_sender(received_);
}

bool OfiMail::try_enter_barrier() {
  round_ = 0;
  if (round_ < ring_.rounds()) send_token();
  return true;
}

bool OfiMail::is_barrier_passed() {
  while (round_ < ring_.rounds() && box_.tokens[static_cast<std::size_t>(round_)] > 0) {
    --box_.tokens[static_cast<std::size_t>(round_)];
    if (++round_ < ring_.rounds()) send_token();
  }
  return round_ == ring_.rounds();
}

void OfiMail::name_awaited(std::vector<int>& ranks) const {
  for (int rank = 0; rank < world_->size(); ++rank) {
    if (box_.untaken(rank) > 0) ranks.push_back(rank);
  }
  for (std::size_t i = 0; i < used_parcels_; ++i) {
    if (!parcels_[i]->is_sent()) ranks.push_back(parcels_[i]->peer());
  }
  for (const std::size_t place : arriving_) ranks.push_back(letters_[place]->from);
  if (round_ < ring_.rounds()) ranks.push_back(ring_.sender(round_));
}

}  // namespace

std::unique_ptr<SparseExchange> sparse_exchange(std::shared_ptr<World> world) {
  const std::shared_ptr<InFlightList> in_flight = world->mailboxes().in_flight();
  const std::uint64_t first = world->limits().first_exchange;
  return std::make_unique<Nbx>(std::make_unique<OfiMail>(std::move(world)), in_flight, first);
}

}  // namespace kplan::transport::ofi_backend
