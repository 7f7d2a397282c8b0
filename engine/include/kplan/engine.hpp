#pragma once
// The engine: compiles plans for the ranks of a transport and runs them again and again.

#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "kplan/plan.hpp"
#include "kplan/world.hpp"

namespace kplan {

/// Whether a C++ type is one of numbers, for buffers of scalars; others are records.
template <class T>
inline constexpr bool is_number = std::is_arithmetic_v<T> || std::is_same_v<std::remove_cv_t<T>, std::complex<float>> ||
                                  std::is_same_v<std::remove_cv_t<T>, std::complex<double>>;

/// The value of a parameter, or the contents of a fixed buffer (copied once; copies of a Value share them), row-major.
class Value {
 public:
  Value(bool v) : scalar_(v) {}  // NOLINT: values are given as they are
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) Value(T v)  // NOLINT
      : scalar_(static_cast<std::int64_t>(v)) {
    if (v > T{0} && std::get<std::int64_t>(scalar_) < 0) scalar_ = static_cast<std::uint64_t>(v);
  }
  template <class T>
  Value(T* array) = delete;        // a pointer says nothing of its length: give a std::span or a std::vector
  Value(double v) : scalar_(v) {}  // NOLINT
  template <class T>
  Value(std::complex<T> v) : scalar_(std::complex<double>(v)) {}  // NOLINT
  /// The elements of a vector, an array, a span.
  template <std::ranges::contiguous_range R>
  requires(std::ranges::sized_range<R> && !std::is_convertible_v<const R&, std::string_view>)
      Value(const R& v)  // NOLINT
      : array_type_(scalar_of<std::ranges::range_value_t<R>>), is_array_(true) {
    const auto bytes = std::as_bytes(std::span(std::ranges::data(v), std::ranges::size(v)));
    bytes_ = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  }

  /// The contents of a buffer of records, as they lie in memory.
  static Value records(std::span<const std::byte> bytes) {
    Value out(0);
    out.is_array_ = out.is_records_ = true;
    out.bytes_ = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
    return out;
  }

  bool is_array() const { return is_array_; }
  bool is_records() const { return is_records_; }
  /// An integer is a std::uint64_t only where it is no std::int64_t.
  using Number = std::variant<bool, std::int64_t, double, std::complex<double>, std::uint64_t>;
  const Number& scalar() const { return scalar_; }
  Scalar array_type() const { return array_type_; }
  std::span<const std::byte> bytes() const { return bytes_ ? *bytes_ : std::span<const std::byte>(); }
  /// The same, for who keeps them; null for a number.
  std::shared_ptr<const std::vector<std::byte>> shared_bytes() const { return bytes_; }

 private:
  Number scalar_ = std::int64_t{0};
  Scalar array_type_ = Scalar::i64;
  bool is_array_ = false, is_records_ = false;
  std::shared_ptr<const std::vector<std::byte>> bytes_;
};

/// Values by name.
using Values = std::vector<std::pair<std::string, Value>>;

/// An operator as a C++ function: place[k] = op(place[k], value[k]) for k = 0 ... count - 1. `places` and `values` are
/// elements of the place's type, one after the other; values have been converted to it. Called once per block of
/// elements, on the thread that runs the plan; must not throw and must not call the engine.
using NativeOperator = std::function<void(void* places, const void* values, std::size_t count)>;

/// Whether compile() waits for machine code. `when_ready`: runs use precompiled kernels, with the same results, until
/// machine code is there, made by a thread in the background. `before_return`: compile() waits for it, and a failure of
/// the code generator is its error.
enum class Code : std::uint8_t { when_ready, before_return };

/// The steps of a compilation, in order, with the microseconds that each took on this rank.
using CompileTimes = std::vector<std::pair<std::string, double>>;

/// How often a program writes a buffer: between most runs, or seldom.
enum class Written : std::uint8_t { often, seldom };

/// Elements in memory that an engine has allocated: zeros at first, aligned to at least 64 bytes, in huge pages where
/// the system has them for the asking. Messages that ranks of the same node send from it are not packed where that
/// pays: the receiver takes them from there, in one pass, while run() or wait() of the sender lasts. What the program
/// writes often has to come back to its core's cache then, and so only long messages (1.25 MiB and more) of elements
/// side by side, or of more memory than caches hold, go that way, while the cores share a cache; what it writes seldom,
/// from KPLAN_LEND_BYTES on. Movable; may outlive its engine; belongs to the engine's thread.
template <class T>
class SharedArray {
  static_assert(std::is_trivially_copyable_v<T>, "kplan: elements of plans are plain data");

 public:
  SharedArray() = default;
  SharedArray(std::shared_ptr<std::byte> memory, std::size_t count, Written written)
      : memory_(std::move(memory)), count_(count), written_(written) {}
  SharedArray(SharedArray&&) noexcept = default;
  SharedArray& operator=(SharedArray&&) noexcept = default;

  std::size_t size() const { return count_; }
  Written written() const { return written_; }
  T* data() const { return reinterpret_cast<T*>(memory_.get()); }
  T& operator[](std::size_t k) const { return data()[k]; }
  T* begin() const { return data(); }
  T* end() const { return data() + count_; }
  /// For who needs the memory longer than the array lives.
  std::shared_ptr<std::byte> shared_memory() const { return memory_; }

 private:
  std::shared_ptr<std::byte> memory_;
  std::size_t count_ = 0;
  Written written_ = Written::often;
};

class Engine;

/// A plan compiled for this rank: buffers are bound to it, then it runs. Movable; belongs to one thread at a time.
/// Executables of one engine may be in flight together; every rank starts them in the same order. May outlive its
/// engine, and goes on working then. What a rank does wrong by itself is thrown there alone; the others wait for it
/// until KPLAN_TIMEOUT passes.
class Executable {
 public:
  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;
  /// Hands it back to the engine, which keeps it with its channels for the next compile of the same plan with the same
  /// values, or ends it. Local. A run in flight is given up: of messages that MPI is in the middle of writing to bound
  /// memory the rest is waited for, at most until KPLAN_TIMEOUT has passed. What the run sends over MPI or libfabric
  /// from where it lies must stay until its peers have taken it.
  ~Executable();

  /// Binds a buffer to the program's memory, row-major (or as the plan's strides say), from its first element. Buffers
  /// that a statement writes must not overlap others. Cheap; local; binds anew at any time between runs.
  /// `memory`: a vector, an array, a span, of numbers or of records. Constant memory is for buffers that no statement
  /// writes. It must live until other memory is bound or the executable is destroyed. During a run the program may read
  /// what no statement writes, and changes nothing.
  /// Throws PlanError on this rank: KP-B020 no such buffer; KP-B022 another size, the message says which is needed;
  /// KP-B023 during a run; KP-B025 another element type, or records of another size; KP-B027 its contents were given to
  /// compile(); KP-B028 it is written, and the memory is constant.
  template <std::ranges::contiguous_range R>
  requires std::ranges::sized_range<R> && std::ranges::borrowed_range<R>
  void bind(std::string_view buffer, R&& memory) {
    bind_elements(buffer, std::span(std::ranges::data(memory), std::ranges::size(memory)));
  }
  /// The array's memory lives as long as it is bound, also without the array.
  template <class T>
  void bind(std::string_view buffer, SharedArray<T>& memory) {
    bind(buffer, std::as_const(memory));
  }
  template <class T>
  void bind(std::string_view buffer, const SharedArray<T>& memory) {
    bind_elements(buffer, std::span(memory.data(), memory.size()), memory.written(), memory.shared_memory());
  }
  /// A buffer of one number.
  template <class T>
  requires is_number<T>
  void bind(std::string_view buffer, T& element) { bind_elements(buffer, std::span(&element, 1)); }
  /// Binds memory of any element type; only the size of all is checked, not KP-B025. `written` as for SharedArray.
  template <std::ranges::contiguous_range R>
  requires std::ranges::sized_range<R> && std::ranges::borrowed_range<R>
  void bind_bytes(std::string_view buffer, R&& memory, Written written = Written::often) {
    bind_memory(buffer, Memory(std::span(std::ranges::data(memory), std::ranges::size(memory)), written));
  }

  /// Sets a varying parameter for the runs that follow. Local. Uniform ones must be set alike on all ranks, before the
  /// same run, which throws PlanError KP-A002 on ranks that are sent what was made with other values than theirs, and
  /// no run can follow (KP-T011). Ranks that are sent nothing are told in one of the runs that follow, at the latest
  /// about when they are twenty runs further than those that they differ from. Throws PlanError on this rank: KP-B011 no such parameter; KP-B013 a value that its type cannot
  /// hold; KP-B023 during a run; KP-B026 it is fixed.
  void set(std::string_view parameter, const Value& value);

  /// Begins a run: packs and sends what the first statements send. Collective in the sense that every rank starts it;
  /// does not wait for others, but where a peer is two runs behind. Bound buffers are the engine's until wait()
  /// returns, or test() true. Throws PlanError on this rank, and nothing is begun: KP-B021 a buffer is not bound;
  /// KP-B024 buffers that are written overlap others; KP-R010 the run before has not ended. TransportError KP-T011
  /// where an earlier run was broken off.
  void start();
  /// Ends the run that was started. Waits without a run started do nothing. Other runs of the engine that were started
  /// go on meanwhile, and also while a collective call of this rank (compile(), say) waits: ranks may wait for theirs in
  /// any order, before such a call or after it.
  /// Throws TransportError on the ranks that wait for a peer that fails, or longer than KPLAN_TIMEOUT, and PlanError
  /// KP-A002: the run is broken off then. RunError for a zero divisor in a value, and PlanError for what is wrong in a
  /// varying pattern, on the ranks that meet it: the run has ended, others may follow.
  void wait();
  /// Moves the run that was started on, as far as that goes without waiting for others, as MPI_Test does: whether it
  /// has ended, and wait() has nothing left to do. True without a run started. Local; ranks call it as often as they
  /// like, and may mix it with wait(). Throws what wait() would, but for KPLAN_TIMEOUT: a peer that has ended is
  /// noticed, one that never comes is not. Other runs of the engine that were started go on, as in wait(). Cost: a look
  /// at each message that has not come, and the unpacking and packing of what can be. A program that computes for long
  /// calls it now and then where nothing moves by itself: what later statements send, long messages over MPI or
  /// libfabric, varying patterns. Those go on from stage to stage as everything else does.
  bool test();
  /// start() and wait() in one. Long messages between ranks that share memory go in pieces then, which the receivers
  /// unpack meanwhile. Throws what these two throw.
  void run();

  /// Where the time went that compile() took on this rank. One step, `look up`, where the plan was known.
  const CompileTimes& compile_times() const;

  /// This rank's schedule as a JSON document.
  std::string schedule_json() const;

 private:
  friend class Engine;
  friend class PlanCache;
  struct State;
  explicit Executable(std::unique_ptr<State> state);
  /// What is bound.
  struct Memory {
    template <class T>
    Memory(std::span<T> elements, Written w)
        : bytes(const_cast<std::byte*>(std::as_bytes(elements).data()), elements.size_bytes()),
          is_constant(std::is_const_v<T>),
          written(w) {}
    std::span<std::byte> bytes;
    bool is_constant;
    Written written;
    std::optional<Scalar> scalar;           ///< none: records, or bytes
    std::size_t record_bytes = 0;           ///< 0: no records
    std::shared_ptr<std::byte> owner = {};  ///< null: the program sees to it that the memory lives
  };
  template <class T>
  void bind_elements(std::string_view buffer, std::span<T> elements, Written written = Written::often,
                     std::shared_ptr<std::byte> owner = nullptr) {
    Memory memory(elements, written);
    memory.owner = std::move(owner);
    if constexpr (std::is_class_v<T> && !is_number<T>) {
      static_assert(std::is_trivially_copyable_v<T>, "kplan: records are plain data; bind their bytes with bind_bytes");
      memory.record_bytes = sizeof(T);
    } else {
      memory.scalar = scalar_of<T>;
    }
    bind_memory(buffer, std::move(memory));
  }
  void bind_memory(std::string_view buffer, Memory memory);
  std::unique_ptr<State> state_;
};

/// The service of one rank. Not thread-safe; several engines may live in one process, each with its own transport.
class Engine {
 public:
  /// Takes a rank of a world, see kplan/world.hpp. Local. Reads and checks the whole environment (the README lists it):
  /// throws PlanError KP-E0xx for a variable that cannot be read, or that is named almost like one of kplan's, and
  /// KP-E009 without a transport.
  explicit Engine(std::shared_ptr<transport::Transport> transport);
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  int rank() const;
  int size() const;

  /// Memory for buffers, see SharedArray. Local. Cost: pages, and where other processes of the node can read them, they
  /// are set aside at once, and a file is kept open; arrays of up to 32 KiB share theirs. Throws TransportError KP-T006
  /// where there is not so much memory, or no more files can be open (ulimit -n); std::bad_alloc for counts that no
  /// memory has.
  template <class T>
  SharedArray<T> allocate(std::size_t count, Written written = Written::often) {
    if (count > SIZE_MAX / 4 / sizeof(T)) throw std::bad_alloc();
    return {allocate_bytes(count * sizeof(T)), count, written};
  }

  /// Registers an operator that plans declare as {"native": true}. Local; every rank does it before it compiles such a
  /// plan. A second one of the same name is for plans compiled from then on. Throws PlanError KP-B031 for an empty one.
  void register_operator(std::string name, NativeOperator op);

  /// Compiles a plan for all ranks of the transport. Collective: every rank gives the same plan, the same uniform
  /// values, and its own private ones. Values are needed for parameters without default, and for fixed buffers, whose
  /// contents are copied. Errors are thrown on all ranks, or on none: PlanError for values that are missing, wrong or
  /// differ between ranks, indices out of bounds, places assigned twice; Unsupported; CompilerError; TransportError.
  /// A plan that was compiled before with the same values and `code` is taken from memory when no rank uses it any
  /// more: one small all-gather. Else cost grows with what this rank sends and receives; four small all-gathers, and
  /// one sparse exchange where only one end of messages knows them. Runs that this rank has started do not go on to
  /// later phases, or answer varying pulls, meanwhile: wait for them first where others may be waiting in the same run.
  Executable compile(const Plan& plan, const Values& values = {}, Code code = Code::when_ready);

 private:
  struct State;
  std::shared_ptr<std::byte> allocate_bytes(std::size_t bytes);
  std::unique_ptr<State> state_;
};

}  // namespace kplan
