#pragma once
// The interface between the engine and whatever moves bytes. One primitive carries known patterns: a channel, a
// directed ordered pipe between two ranks, opened once, with a few slots. Message number `seq` (0, 1, 2, ...) of a
// channel uses slot seq % slots; a sender can be at most `slots` messages ahead of its receiver's releases (less than
// three times as many where the backend buffers what is sent, as mpi does).
//
//   sender:    while (!(p = channel.send_slot(seq))) progress;  pack into p;      channel.put(seq, bytes)
//         or:  channel.put_in_place(seq, region, bytes);        ... later ...     while (!channel.is_sent(seq))
//         progress;
//   receiver:  while (!(p = channel.arrived(seq))) progress;    unpack from p;    channel.release(seq)
//         before that, where its end is placed:  channel.expect(seq, Lies::in_place or in_slot);
//
// A transport belongs to one rank and is used by one thread at a time. Backends: local (ranks as threads of one
// process), mpi, ofi. All ranks must make collective calls in the same order.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kplan/error.hpp"
#include "kplan/world.hpp"  // IWYU pragma: export

namespace kplan::transport {

using Clock = std::chrono::steady_clock;

enum class Direction : std::uint8_t { send, receive };

/// How bytes come into a slot.
enum class Stores : std::uint8_t {
  cached,        ///< as ordinary code writes them: lines that are elsewhere are fetched first
  non_temporal,  ///< past the caches
  whole_lines,   ///< through the caches, by the processor's own copy, which need not fetch what it overwrites
};

/// Where a message of a placed end lies.
enum class Lies : std::uint8_t { in_slot, in_place };

/// Where bytes lie in memory, in the order in which they travel: for each offset, a nest of loops over blocks.
struct Blocks {
  std::byte* base = nullptr;                        ///< only read by a sender
  std::vector<std::int64_t> offsets_bytes;          ///< from the base
  std::vector<std::int64_t> counts, strides_bytes;  ///< by loop, outermost first; strides > 0
  std::int64_t block_bytes = 0;
  bool operator==(const Blocks&) const = default;
};

/// One end of a channel to be opened.
struct ChannelSpec {
  int peer = 0;                    ///< the rank at the other end; not the own rank
  std::uint32_t id = 0;            ///< pairs the two ends: unique for (sender, receiver) within one call of open
  std::size_t capacity_bytes = 0;  ///< of a message, at least 1; the same at both ends
  int slots = 2;                   ///< at least 1; the same at both ends
  Direction direction = Direction::send;
  bool is_placed = false;  ///< messages of this end may lie in the caller's memory, see Channel::place
  /// A sending end's receivers beside `peer`, where Transport::most_receivers() allows them: each opens its end as
  /// though it were the only one. Every message goes to all, from one slot, which is free again when all have released
  /// it; is_sent() means all of them. Nothing is lent or placed.
  std::vector<int> other_receivers = {};
  /// How many bytes of a message may go ahead of the rest at a time, see Channel::put_first; 0: it goes as a whole. Of
  /// what both ends say the less holds, or that it goes as a whole.
  std::size_t ahead_bytes = 0;
  /// Whether the receiving end may be closed before all that was sent is taken, and nothing is lost by it: what is left
  /// is taken when the sending end has closed, too. No message may be empty or placed then. The same at both ends.
  bool may_leave_messages = false;
};

/// An open end of a channel. Destroying it closes it, locally: messages that the other end has not taken may be lost.
/// The run-time calls allocate nothing, never block, and may be made in any order that the protocol above allows.
class Channel {
 public:
  virtual ~Channel() = default;
  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Whether the lines of the slots are far: in caches that this rank's core has no part in. The sender calls it after
  /// send_slot(seq) gave the slot, before anything is written there, the receiver after arrived(seq) gave it, before it
  /// reads. Cheap.
  virtual bool is_far(std::uint64_t) { return false; }

  // The sender's calls; `seq` counts up by one from 0.

  /// Where to pack message `seq`: capacity_bytes writable bytes, aligned to 64 (to 16 where the capacity is at most 24
  /// bytes); null while its slot is still in use.
  virtual std::byte* send_slot(std::uint64_t seq) = 0;
  /// How the message that is about to be written there had better be: in another way than `cached`, by copy_to_slot,
  /// where the lines are far, and that has been faster lately, or to try it. put(seq) follows when it is written.
  virtual Stores best_stores(std::uint64_t) { return Stores::cached; }
  /// Sends the first `bytes` of the slot; at most once for each seq, after send_slot(seq) gave the slot.
  virtual void put(std::uint64_t seq, std::size_t bytes) = 0;
  /// Says that the first `bytes` of message `seq`, which has capacity_bytes, are in the slot: those that may go ahead
  /// are sent. Any number of times, with more bytes each, before put(seq).
  virtual void put_first(std::uint64_t, std::size_t /*bytes*/) {}
  /// Sends a region of the caller's instead of the slot; call only after send_slot(seq) was not null. The region
  /// must stay unchanged until is_sent(seq). Cheap to repeat with the same region.
  virtual void put_in_place(std::uint64_t seq, const std::byte* region, std::size_t bytes) = 0;
  /// Lends message `seq` instead of sending it: the receiver reads these regions of the sender's memory where they lie.
  /// Call only after send_slot(seq) was not null. The regions must stay unchanged until is_sent(seq), or until the
  /// message was taken back and put. False, and nothing is lent, where the receiver cannot read them, or there are too
  /// many: one for every 16 bytes of capacity always go.
  virtual bool lend(std::uint64_t, std::span<const std::byte* const>) { return false; }
  /// Lends message `seq`, which lies in its place (see place()), in any memory of the sender's, for the receiver to
  /// fetch. As lend() otherwise; false where the receiver cannot.
  virtual bool lend_to_fetch(std::uint64_t) { return false; }
  /// Takes a lent message back, so that it can be put, if the receiver has not begun to read it, or has declined it.
  virtual bool take_back(std::uint64_t) { return false; }
  /// Whether the memory of message `seq` (and of all before it) may be changed again.
  virtual bool is_sent(std::uint64_t seq) = 0;

  // The receiver's calls; messages are taken in order.

  /// The bytes of message `seq`, in place until release, aligned as slots are unless they are the sender's own region;
  /// null while it has not come.
  virtual const std::byte* arrived(std::uint64_t seq) = 0;
  /// What has come of message `seq` ahead of the rest, from its first byte on, where arrived() will have it; nothing
  /// once arrived() has it, or where it is to lie in its place.
  virtual std::span<const std::byte> arrived_first(std::uint64_t) { return {}; }
  /// Where this end can read the regions of message `seq`, which arrived() gave last, if it was lent by lend(): then
  /// there is nothing at the address that arrived() gave.
  virtual std::span<const std::byte* const> lent(std::uint64_t) { return {}; }
  /// Whether message `seq`, which arrived() gave last, is to be fetched: there is nothing at the address that it gave.
  virtual bool is_to_be_fetched(std::uint64_t) { return false; }
  /// Copies such a message out of the sender's memory to its place at this end. False where that cannot be done; some
  /// may have been written then.
  virtual bool fetch(std::uint64_t) { return false; }
  /// The same of so many of its bytes, from `offset_bytes` on, to that address; cheapest in order.
  virtual bool fetch_part(std::uint64_t, std::size_t /*offset_bytes*/, std::byte* /*to*/, std::size_t /*bytes*/) {
    return false;
  }
  /// Refuses message `seq`, which was lent: the sender puts it instead when it notices.
  virtual void decline(std::uint64_t) {}
  /// Hands the slot back. Messages are released in order, each once.
  virtual void release(std::uint64_t seq) = 0;

  /// Says where messages lie from now on that are in place, while none is under way at this end: at ends that were
  /// opened as placed, or messages that are fetched. Cheap to repeat with the same blocks; may allocate.
  virtual void place(std::span<const Blocks>) {}

  // Ends that were opened as placed, where Transport::places_messages(). All messages are of capacity_bytes. Each lies
  // in the slot, as at other ends, or in its place, and then the address that send_slot() and arrived() give only tells
  // that it is time.

  /// The sender's: sends message `seq` from its place, which must stay unchanged until is_sent(seq). Call only after
  /// send_slot(seq) was not null.
  virtual void put_placed(std::uint64_t) {}
  /// The receiver's: from now on message `seq` may be written there. Before arrived(seq), once for every message.
  virtual void expect(std::uint64_t, Lies) {}
  /// The receiver's: gives up message `seq`, which was expected. False while something may still be written there.
  virtual bool give_up(std::uint64_t) { return true; }
};

/// Copies into a slot in one of these ways, where the processor can: its lines, which the receiver has read, or is to
/// read, need not come back first. Whoever sees a later put() sees what it wrote. The memories do not overlap.
void copy_to_slot(std::byte* to, const std::byte* from, std::size_t bytes, Stores stores);

/// One message of a sparse exchange that is to be sent; a rank may send itself one.
struct OutgoingLetter {
  int to = 0;
  std::span<const std::byte> bytes;  ///< perhaps none
  /// What goes behind them from where it lies, in this order; see SparseExchange::least_body_bytes.
  std::span<const std::span<const std::byte>> body = {};
};

/// One message of a sparse exchange that has come.
struct ReceivedLetter {
  int from = 0;
  std::span<const std::byte> bytes;  ///< aligned to 16
};

/// Dynamic sparse exchange (NBX: Hoefler, Siebert, Lumsdaine, PPoPP 2010; Kanor, figure 3): every rank sends messages
/// of any size to ranks that do not know of it, and gets all that are meant for it. An object serves one exchange
/// after the other, all ranks in the same order, and each begins the next one once it is_complete() here. Exchanges of
/// one object never mix, however far some ranks run ahead. Different objects may be in flight together; Transport's
/// progress() and collective calls move all of them, so ranks may wait for them in different orders. Destroying it
/// gives up what is in flight, locally; letters that are not known to be sent by then must stay as long as the
/// transport, or lie in memory that it keeps, and so must what bodies come from and go to, unless that has ended within
/// a second. Exchanges that look alike allocate nothing after the first few. Cost of one, on a rank: one message a
/// letter, and one or more a body; for unknown sources also log2(size) empty ones, or one atomic count between threads,
/// or an empty one to each other rank where all share memory and are at most 32. Memory: what this object had in flight
/// at the most. Errors: TransportError, after which the object cannot be used.
class SparseExchange {
 public:
  virtual ~SparseExchange() = default;
  SparseExchange() = default;
  SparseExchange(const SparseExchange&) = delete;
  SparseExchange& operator=(const SparseExchange&) = delete;

  /// Memory in which a letter of that many bytes can be built, aligned to 16, so that begin() need not copy it if it is
  /// given as it lies there: for the only letter to a rank in the next exchange. Null where there is none. Call it
  /// while it is_complete().
  virtual std::byte* room(int, std::size_t) { return nullptr; }

  /// A letter for which there is no room() had better leave so many bytes and more to its body: that goes from where it
  /// lies to where its receiver wants it, and is not put together on the way. 0: letters have none. A letter with a
  /// body is the only one to its rank, which is another, and says so: receivers call letters_have_come() and
  /// place_body() before is_complete().
  virtual std::size_t least_body_bytes() const { return 0; }

  /// Keeps memory in which its letters lie for as long as they may be read, be it longer than the object lives; in
  /// place of what it was given before. Those that read no letters after their end need not.
  virtual void keep(std::shared_ptr<const void>) {}

  /// Begins the next exchange in which nobody knows who sends to it. Collective, does not block. What the letters
  /// consist of must stay unchanged until is_complete(); their own span is read at once. Ends nowhere before all have
  /// begun it.
  virtual void begin(std::span<const OutgoingLetter> letters) = 0;
  /// The same where every rank knows who sends to it: `sources` (ascending, perhaps with this rank) send one letter
  /// each, so that nobody need find out when it has ended. A rank without letters and sources has nothing to do with
  /// the others, and may leave the exchange out; one without sources may be any number of exchanges ahead. All ranks
  /// choose the same form for the same exchange.
  virtual void begin(std::span<const OutgoingLetter> letters, std::span<const int> sources) = 0;

  /// Whether it has ended: all that others send to this rank has come, and the own letters' bytes are free again.
  /// Moves the exchange on, never blocks; call it with progress() and pause() in between, as for channels. True
  /// before the first begin.
  virtual bool is_complete() = 0;

  /// Whether everything has come but bodies: received() is as when it is complete. Moves it on as is_complete() does.
  virtual bool letters_have_come() { return is_complete(); }
  /// Where the body of that rank's letter goes, in all as many bytes as it has, which can be written until it is
  /// complete; none: nowhere. Once for each letter with a body, when letters_have_come(). The span must stay until it
  /// is complete, too.
  virtual void place_body(int /*from*/, std::span<const std::span<std::byte>>) {}

  /// What has come so far, by ascending sender and then in the order in which it was sent once it is complete, in the
  /// order of arrival before. The bytes are valid until the next begin, the span until the next is_complete() or
  /// progress() while it is not complete.
  virtual std::span<const ReceivedLetter> received() const = 0;

  /// Ranks that are still waited for, ascending, as far as it is known, for error messages: senders that have not sent,
  /// receivers that have not taken a letter, or ranks that have not come to the end. local names all of them that have
  /// not begun; mpi those that this rank waits for directly, and who follows what they wait for in turn comes to one
  /// that has not begun. None when it is complete.
  virtual std::vector<int> waits_for() const = 0;
};

/// The collective operations that move bytes between all ranks, with parts of any length.
enum class CollectiveKind : std::uint8_t { none, broadcast, scatter, gather, allgather, alltoall };

struct CollectiveSpec {
  CollectiveKind kind = CollectiveKind::none;  ///< not none; the same on all ranks
  int root = -1;                               ///< of broadcast, scatter and gather
  /// By rank, what this rank sends there and what it receives from there; 0 for itself. The same at both ends; in all
  /// less than 2^31, also with every part on a multiple of 64.
  std::vector<std::size_t> outgoing_bytes, incoming_bytes;
};

/// A collective operation of a transport's own, opened once and done again and again. Operations may be started in
/// different orders on different ranks. Errors: TransportError.
class Collective {
 public:
  virtual ~Collective() = default;
  Collective() = default;
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  /// Where to pack what goes to `peer`, aligned to 64; the same for all peers in broadcast and allgather. To be written
  /// while it is_complete().
  virtual std::byte* outgoing(int peer) = 0;
  /// Begins it, when it is_complete(). Does not block.
  virtual void start() = 0;
  /// Whether it has ended here. Moves it on, never blocks. True before the first start.
  virtual bool is_complete() = 0;
  /// What has come from `peer`, aligned to 64, until the next start.
  virtual const std::byte* incoming(int peer) = 0;
};

/// What a sparse exchange is for.
enum class Use : std::uint8_t {
  set_up,  ///< few exchanges: it should cost little to make
  runs,    ///< many: each should
};

/// Something of a rank that other ranks may need to be moved on while it waits for something else.
class InFlight {
 public:
  /// Moves it as far as it goes without blocking, without collective calls. It and others may be let go from here, and
  /// progress() may be called. Throws what progress() may.
  virtual void move_on() = 0;

 protected:
  ~InFlight() = default;
};

/// What a rank needs of the world. Errors are TransportError, after which the transport cannot be used, but for those
/// of open() that all ranks throw alike: KP-T003, KP-T006 and KP-T007; and those of allocate().
class Transport {
 public:
  virtual ~Transport() = default;
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual std::string_view name() const = 0;  ///< `local`, `mpi`, `ofi`
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Collective: gives every rank's bytes to every rank, in rank order. Cost: O(size) messages or better; for
  /// set-up, not for runs. Throws when some rank has not come at the deadline, naming it where that is known.
  virtual std::vector<std::string> allgather(std::string_view mine, Clock::time_point deadline) = 0;

  /// Collective: opens this rank's ends (perhaps none), in the order of `specs`; the channels are connected and
  /// warm on return. An end whose peer does not open its own, or with another capacity or slot count, is an error on
  /// all ranks. Cost: what the rank's own channels take, and all-gathers of a few bytes.
  virtual std::vector<std::unique_ptr<Channel>> open(std::span<const ChannelSpec> specs,
                                                     Clock::time_point deadline) = 0;

  /// Collective: makes one sparse exchange object. Cheap: no connection is opened for it. Nobody is waited for, except
  /// in mpi when the tags of a communicator are used up; where few ranks share memory all come to it, as to an
  /// all-gather.
  virtual std::unique_ptr<SparseExchange> open_exchange(Clock::time_point deadline, Use use = Use::runs) = 0;

  /// Whether an exchange in which every rank tells every other, if only by an empty letter, is faster than one in which
  /// receivers do not know their sources: where ranks are few. The same on all ranks.
  virtual bool tells_faster() const { return false; }

  /// Whether there are collective operations of the transport's own.
  virtual bool has_collectives() const { return false; }
  /// Collective: opens one. Null where there are none.
  virtual std::unique_ptr<Collective> open_collective(const CollectiveSpec&, Clock::time_point) { return nullptr; }

  /// How many bytes of a long message to this peer are best sent at a time, since it can take them while the next are
  /// packed; 0: all of them. The same at both ends.
  virtual std::size_t piece_bytes(int) const { return 0; }
  /// Messages of so many bytes and more to this peer had better be made in this rank's own memory, some at a time, and
  /// written to their slots by copy_to_slot, while their channels' best_stores() say so; 0: none.
  virtual std::size_t non_temporal_bytes(int) const { return 0; }
  /// Whether what was put comes to this peer though the sender does something else then; if not, it had better move the
  /// transport until the message is_sent.
  virtual bool delivers_alone(int) const { return false; }
  /// How many slots channels for messages of so many bytes had best have. The same at both ends.
  virtual int best_slots(int, std::size_t) const { return 2; }
  /// Messages of so many bytes and less to this peer had better go as one where there are several at a time; 0: each by
  /// itself. The same at both ends.
  virtual std::size_t best_shared_bytes(int) const { return 0; }
  /// How many bytes of a message of `bytes` to this peer are best packed, and unpacked, at a time, since they go ahead
  /// of the rest (ChannelSpec::ahead_bytes), at an end that is placed or not; 0: all of them.
  virtual std::size_t ahead_bytes(int, std::size_t /*bytes*/, bool /*is_placed*/) const { return 0; }
  /// Whether ends of channels to and from this peer can be placed.
  virtual bool places_messages(int) const { return false; }
  /// How many receivers a sending end may have with this peer among them; 1: this one alone. The same at both ends.
  virtual int most_receivers(int) const { return 1; }
  /// Whether put_in_place to this peer spares the copy into a slot.
  virtual bool lends_regions(int) const { return true; }

  /// Whether channels to and from this peer can lend memory that allocate() gave. The same at both ends.
  virtual bool lends_memory(int) const { return false; }
  /// Messages of so many bytes and more to this peer can be lent for it to fetch; 0: none.
  virtual std::size_t fetch_bytes(int) const { return 0; }
  /// Whether peers that lends_memory() can read this memory, all of its allocation. Cheap.
  virtual bool can_lend(const std::byte*) const { return false; }
  /// Memory of zeros, aligned to at least 64, in huge pages where the system has them for the asking; peers on this
  /// node read it in place. It may outlive the transport; both belong to one thread. Local. Errors: TransportError.
  virtual std::shared_ptr<std::byte> allocate(std::size_t bytes);

  /// Moves whatever can be moved now. Never blocks.
  virtual void progress() = 0;
  /// Has progress() move it on, and every collective call again and again while it waits, until it is let go. Local.
  virtual void keep_moving(InFlight&) = 0;
  virtual void let_go(InFlight&) = 0;

  /// Called by a waiting rank that found nothing to do `idle_rounds` times in a row: spins, then yields, then
  /// sleeps for a short time, so that ranks that share a core let each other work.
  virtual void pause(unsigned idle_rounds) = 0;

  /// Becomes true where nothing can run on it any more, since what it is made of has ended: after MPI_Finalize. Lives
  /// as long as the transport; every run looks at it.
  virtual const bool& has_ended() const {
    static constexpr bool never = false;
    return never;
  }

  /// A rank that is known to have ended or failed, if there is one. Cheap.
  virtual std::optional<int> dead() = 0;

  /// Whether that rank is known to have ended or failed. Cheap. It may have sent all it had to send before: look
  /// once more for what you wait for before you take this for a failure.
  virtual bool is_dead(int rank) { return dead() == rank; }
};

/// Collective: waits until an exchange that was begun is complete, and moves the transport on. Errors: TransportError,
/// which begins with what this rank is `doing`: KP-T002 where a rank that is waited for has ended, KP-T004 at the
/// deadline.
void complete(Transport& transport, SparseExchange& exchange, Clock::time_point deadline, std::string_view doing);

/// The time a wait may take: KPLAN_TIMEOUT in seconds (a decimal number > 0), 60 s by default; `off`: 10^9 s, for ever
/// to a program. Errors: PlanError for anything else in that variable.
std::chrono::nanoseconds timeout_from_environment();

}  // namespace kplan::transport
