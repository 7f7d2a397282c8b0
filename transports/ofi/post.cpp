// How it works: many buffers of one size wait for notes from anybody. Providers may complete messages in another order
// than they were sent, so notes are numbered for each receiver, and one that comes early keeps its buffer until its
// turn comes. A note that fits is handed to the provider at once (inject); else, or when there is no room or others wait
// to go to the same rank, a copy waits. Bytes that a note has no room for follow with a tag that both ends count up to,
// in pieces, one after the other.
#include "transports/ofi/post.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "transports/ofi/tags.hpp"

namespace kplan::transport::ofi_backend {
namespace {

constexpr std::size_t note_bytes = 4096;
constexpr std::size_t most_bytes_inside = note_bytes - sizeof(Note);
constexpr std::size_t fewest_buffers = 64;
constexpr std::size_t most_buffers = 512;

using Buffer = std::array<std::byte, note_bytes>;

}  // namespace

/// A buffer that waits for a note, or has one.
class Post::Incoming final : public Operation {
 public:
  explicit Incoming(Post& post) : Operation(anybody), post_(&post) {
    registration_ = Registration::local(post.endpoint_, buffer.data(), buffer.size());
  }
  alignas(64) Buffer buffer;

 private:
  ssize_t post() override {
    return fi_trecv(post_->endpoint_.ep(), buffer.data(), buffer.size(), registration_.descriptor(), FI_ADDR_UNSPEC,
                    tags::note, 0, context());
  }
  void ended() override { post_->came(*this); }

  Post* post_;
  Registration registration_;
};

/// A copy of a note that waits for room, or for its end.
class Post::Outgoing final : public Operation {
 public:
  explicit Outgoing(Post& post) : Operation(anybody), post_(&post) {
    registration_ = Registration::local(post.endpoint_, buffer.data(), buffer.size());
  }
  void set(int to, std::size_t total) {
    set_peer(to);
    bytes_ = total;
  }
  alignas(64) Buffer buffer;

 private:
  ssize_t post() override {
    const Endpoint& endpoint = post_->endpoint_;
    if (bytes_ > endpoint.info().tx_attr->inject_size)
      return fi_tsend(endpoint.ep(), buffer.data(), bytes_, registration_.descriptor(), endpoint.address(peer()),
                      tags::note, context());
    const ssize_t status = fi_tinject(endpoint.ep(), buffer.data(), bytes_, endpoint.address(peer()), tags::note);
    return status == 0 ? 1 : status;
  }
  void ended() override {
    --post_->under_way_[static_cast<std::size_t>(peer())];
    post_->free_outgoing_.push_back(this);
  }
  void failed() override { ended(); }

  Post* post_;
  std::size_t bytes_ = 0;
  Registration registration_;
};

/// The bytes of a note that had no room for them.
class Post::Arriving final : public Operation {
 public:
  explicit Arriving(Post& post) : Operation(anybody), post_(&post) {}
  void begin(const Note& of, const Recipient::Place& where, std::uint64_t first_number) {
    note = of;
    place = where;
    done = 0;
    number = first_number;
    registration = Registration::local(post_->endpoint_, place.memory, note.bytes);
  }

 private:
  std::size_t piece() const { return std::min<std::size_t>(note.bytes - done, post_->piece_bytes_); }
  ssize_t post() override {
    return fi_trecv(post_->endpoint_.ep(), place.memory + done, piece(), registration.descriptor(), FI_ADDR_UNSPEC,
                    tags::bulk(note.from, number), 0, context());
  }
  void ended() override {
    done += piece();
    ++number;
    if (done < note.bytes) return post_->endpoint_.start(*this);
    registration = {};
    post_->free_arriving_.push_back(this);
    post_->recipient_.filled(note, place.whose);
  }

  Post* post_;
  Note note;
  Recipient::Place place;
  std::size_t done = 0;
  std::uint64_t number = 0;
  Registration registration;
};

ssize_t Parcel::post() {
  const Endpoint& endpoint = post_->endpoint_;
  return fi_tsend(endpoint.ep(), data_, std::min(left_, post_->piece_bytes_), registration_.descriptor(),
                  endpoint.address(peer()), tags::bulk(post_->rank_, number_), context());
}

void Parcel::ended() {
  const std::size_t piece = std::min(left_, post_->piece_bytes_);
  data_ += piece;
  left_ -= piece;
  ++number_;
  if (left_ > 0) return post_->endpoint_.start(*this);
  registration_ = {};
  is_sent_ = true;
}

Post::Post(Endpoint& endpoint, Recipient& recipient, int rank, int size, std::size_t piece_bytes)
    : endpoint_(endpoint),
      recipient_(recipient),
      rank_(rank),
      piece_bytes_(piece_bytes),
      sent_(static_cast<std::size_t>(size)),
      taken_(sent_),
      under_way_(sent_),
      bulks_sent_(sent_.size()),
      bulks_taken_(sent_.size()),
      early_(sent_.size()) {
  const std::size_t room = endpoint.info().rx_attr->size / 2;  // the other half is for bulk messages
  add_incoming(std::min(room, std::clamp(4 * sent_.size(), fewest_buffers, most_buffers)));
}

Post::~Post() { endpoint_.close(); }  // no buffer goes while it can be written to

void Post::add_incoming(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    incoming_.push_back(std::make_unique<Incoming>(*this));
    endpoint_.start(*incoming_.back());
  }
}

Post::Outgoing& Post::outgoing() {
  if (free_outgoing_.empty()) {
    outgoing_.push_back(std::make_unique<Outgoing>(*this));
    free_outgoing_.reserve(outgoing_.size());
    return *outgoing_.back();
  }
  Outgoing& out = *free_outgoing_.back();
  free_outgoing_.pop_back();
  return out;
}

/// Whether the bytes went with it.
bool Post::send(int to, Word word, std::uint32_t number, std::uint64_t value, std::span<const std::byte> bytes) {
  std::uint32_t& order = sent_[static_cast<std::size_t>(to)];
  const Note note{order++, rank_, word, number, value, bytes.size()};
  const bool has_room = bytes.size() <= most_bytes_inside;
  const std::size_t total = sizeof note + (has_room ? bytes.size() : 0);
  const auto write = [&](Buffer& buffer) {
    std::memcpy(buffer.data(), &note, sizeof note);
    if (total > sizeof note) std::memcpy(buffer.data() + sizeof note, bytes.data(), bytes.size());
  };
  if (total <= endpoint_.info().tx_attr->inject_size && !endpoint_.is_any_waiting(to)) {
    alignas(64) Buffer buffer;
    write(buffer);
    if (fi_tinject(endpoint_.ep(), buffer.data(), total, endpoint_.address(to), tags::note) == 0) return has_room;
  }
  Outgoing& copy = outgoing();
  write(copy.buffer);
  copy.set(to, total);
  ++under_way_[static_cast<std::size_t>(to)];
  endpoint_.start(copy);
  return has_room;
}

void Post::send(int to, Word word, std::uint32_t number, std::uint64_t value, std::span<const std::byte> bytes,
                Parcel& parcel) {
  parcel.set_peer(to);
  parcel.is_sent_ = send(to, word, number, value, bytes);
  if (parcel.is_sent_) return;
  parcel.data_ = bytes.data();
  parcel.left_ = bytes.size();
  std::uint64_t& first = bulks_sent_[static_cast<std::size_t>(to)];
  parcel.number_ = first;
  first += (bytes.size() + piece_bytes_ - 1) / piece_bytes_;
  parcel.registration_ = Registration::local(endpoint_, bytes.data(), bytes.size());
  endpoint_.start(parcel);
}

void Post::came(Incoming& incoming) {
  Note note;
  std::memcpy(&note, incoming.buffer.data(), sizeof note);
  const auto from = static_cast<std::size_t>(note.from);
  if (note.order != taken_[from]) {
    early_[from].emplace(note.order, &incoming);
    return add_incoming(1);
  }
  Incoming* next = &incoming;
  while (true) {
    ++taken_[from];
    dispatch(note, next->buffer.data() + sizeof note);
    endpoint_.start(*next);
    const auto found = early_[from].find(taken_[from]);
    if (found == early_[from].end()) return;
    next = found->second;
    early_[from].erase(found);
    std::memcpy(&note, next->buffer.data(), sizeof note);
  }
}

void Post::dispatch(const Note& note, const std::byte* bytes) {
  const Recipient::Place place = recipient_.take(note);
  if (note.bytes > most_bytes_inside) {
    std::uint64_t& first = bulks_taken_[static_cast<std::size_t>(note.from)];
    if (free_arriving_.empty()) {
      arriving_.push_back(std::make_unique<Arriving>(*this));
      free_arriving_.reserve(arriving_.size());
      free_arriving_.push_back(arriving_.back().get());
    }
    Arriving& arriving = *free_arriving_.back();
    free_arriving_.pop_back();
    arriving.begin(note, place, first);
    first += (note.bytes + piece_bytes_ - 1) / piece_bytes_;
    return endpoint_.start(arriving);
  }
  if (note.bytes > 0) std::memcpy(place.memory, bytes, note.bytes);
  recipient_.filled(note, place.whose);
}

}  // namespace kplan::transport::ofi_backend
