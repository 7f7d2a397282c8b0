#include "transports/shared/lent_pipes.hpp"

#include <utility>

namespace kplan::transport {

struct LentPipes::State {
  std::unique_ptr<SharedExchange> exchange;  ///< null when an object was destroyed before it was complete
  bool is_lent = false;
  bool may_hold_letters = false;  ///< whose receivers close their objects without having begun the exchange
};

class LentPipes::Borrower final : public SparseExchange {
 public:
  explicit Borrower(std::shared_ptr<State> state) : state_(std::move(state)), exchange_(*state_->exchange) {
    state_->is_lent = true;
  }
  ~Borrower() override {
    state_->is_lent = false;
    if (!exchange_.forget()) state_->exchange.reset();
  }

  std::byte* room(int to, std::size_t bytes) override { return exchange_.room(to, bytes); }
  std::size_t least_body_bytes() const override { return exchange_.least_body_bytes(); }
  void begin(std::span<const OutgoingLetter> letters) override { exchange_.begin(letters); }
  void begin(std::span<const OutgoingLetter> letters, std::span<const int> sources) override {
    state_->may_hold_letters = true;
    exchange_.begin(letters, sources);
  }
  bool is_complete() override { return exchange_.is_complete(); }
  bool letters_have_come() override { return exchange_.letters_have_come(); }
  void place_body(int from, std::span<const std::span<std::byte>> regions) override {
    exchange_.place_body(from, regions);
  }
  std::span<const ReceivedLetter> received() const override { return exchange_.received(); }
  std::vector<int> waits_for() const override { return exchange_.waits_for(); }

 private:
  std::shared_ptr<State> state_;
  SharedExchange& exchange_;
};

LentPipes::LentPipes(int rank, Pipes pipes, std::shared_ptr<InFlightList> in_flight)
    : state_(std::make_shared<State>()) {
  state_->exchange = shared_exchange(rank, std::move(pipes), std::move(in_flight));
}
LentPipes::~LentPipes() = default;

bool LentPipes::are_free() const { return state_->exchange && !state_->is_lent && !state_->may_hold_letters; }

std::unique_ptr<SparseExchange> LentPipes::lend() { return std::make_unique<Borrower>(state_); }

}  // namespace kplan::transport
