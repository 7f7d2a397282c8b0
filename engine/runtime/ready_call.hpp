#pragma once
// A kernel call with its code, ready to be made again and again, as a whole or for a part of its iterations.

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "engine/lower/kernel_call.hpp"
#include "engine/runtime/native_reduction.hpp"
#include "jit/compiler.hpp"

namespace kplan {

/// Allocates nothing when it is called. Not copied once made: it points into itself.
class ReadyCall {
 public:
  /// `spec` is that of the call, null where it has none.
  ReadyCall(KernelCall call, jit::Kernel kernel, const jit::KernelSpec* spec);
  ReadyCall(KernelCall call, NativeReduction native);
  ReadyCall(ReadyCall&&) noexcept = default;
  ReadyCall& operator=(ReadyCall&&) noexcept = default;

  /// Runs it on the memory; `message` is the message's first byte. Returns 0, or 1 + the number of an iteration with a
  /// zero divisor.
  std::uint64_t operator()(const std::vector<BoundMemory>& memory, std::byte* message);
  /// The same for calls that unpack: these only read the message.
  std::uint64_t unpack(const std::vector<BoundMemory>& memory, const std::byte* message) {
    return (*this)(memory, const_cast<std::byte*>(message));
  }
  /// The same with another list for stream 0, the only one that has one.
  std::uint64_t unpack_listed(const std::vector<BoundMemory>& memory, const std::byte* message,
                              std::span<const jit::ListEntry> places);
  /// Its part of the message lies so much further back: in a message of several.
  void move_in_message(std::int64_t bytes);
  void set_varying(const std::vector<ScalarValue>& parameters);
  const KernelCall& call() const { return call_; }
  /// How many bytes that lie together at both ends it copies at a time; 0: it does not copy.
  std::int64_t run_bytes() const { return run_bytes_; }

  /// How the call falls into units, the smallest parts that can be run alone: unit u works on `unit_bytes` bytes of the
  /// message from `first_byte + u * unit_bytes` on.
  struct Units {
    std::int64_t first_byte = 0, unit_bytes = 0, count = 0;
  };
  /// Nothing where it cannot be run in parts.
  const std::optional<Units>& units() const { return units_; }
  /// The units [first, end), not none; `bytes` is where the first one's part of the message lies.
  std::uint64_t run_units(const std::vector<BoundMemory>& memory, std::byte* bytes, std::int64_t first,
                          std::int64_t end);

 private:
  static constexpr std::size_t most_levels = 16;
  /// A loop that can be cut: the list, or a dimension whose extent is an argument.
  struct Level {
    int dimension = -1;      ///< -1: the list
    std::int64_t count = 1;  ///< of iterations
    std::int64_t units = 1;  ///< in one iteration
  };
  /// A scalar that counts positions: it starts elsewhere in a part.
  struct Position {
    std::size_t slot = 0;
    std::vector<std::int64_t> strides;  ///< by dimension
  };

  /// A stream whose address can be another at every call.
  struct Base {
    std::uint32_t stream = 0;
    std::int32_t buffer = -1;  ///< -1: it lies in the message
    std::int64_t offset_bytes = 0;
  };

  std::int64_t find_run_bytes(const jit::KernelSpec& spec) const;
  std::int64_t copied_bytes(const jit::KernelSpec& spec) const;
  void set_stores(std::int64_t bytes);
  /// Parts that are packed are read at once.
  bool parts_go_past_caches() const { return goes_past_caches_ && call_.streams[0].kind == StreamKind::buffer; }
  std::optional<Units> find_units(const jit::KernelSpec& spec);
  std::uint64_t cut(std::size_t level, std::int64_t first, std::int64_t end);
  std::uint64_t run_box(std::size_t level, std::int64_t first, std::int64_t end);
  static std::byte* address(const Base& b, const std::vector<BoundMemory>& memory, std::byte* message);
  void set_bases(const std::vector<BoundMemory>& memory, std::byte* message);

  KernelCall call_;
  jit::Kernel kernel_;
  std::optional<NativeReduction> native_;
  std::int64_t native_offset_bytes_ = 0;  ///< in the message
  std::vector<Base> moving_;
  std::vector<std::byte*> bases_;
  std::vector<const jit::ListEntry*> lists_;

  std::int64_t run_bytes_ = 0;
  bool goes_past_caches_ = false;  ///< as a whole
  std::optional<Units> units_;
  std::vector<Level> levels_;
  std::vector<std::int64_t> list_strides_;  ///< by stream: what one iteration of the list adds
  std::vector<Position> positions_;
  std::array<std::int64_t, most_levels> at_{};  ///< the iteration of each level that is fixed
  std::vector<std::byte*> part_bases_;          ///< arguments of a part
  std::vector<const jit::ListEntry*> part_lists_;
  std::vector<std::int64_t> part_extents_;
  std::vector<std::uint64_t> part_scalars_;
};

}  // namespace kplan
