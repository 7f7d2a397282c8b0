#pragma once
// A kernel call with its code, ready to be made again and again, as a whole or for a part of its iterations.

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/lower/kernel_call.hpp"
#include "engine/runtime/lines.hpp"
#include "engine/runtime/native_reduction.hpp"
#include "jit/compiler.hpp"
#include "kplan/transport.hpp"

namespace kplan {

/// Allocates nothing when it is called. What a call reads lies together, in two or three cache lines as a rule:
/// programs compute between runs, and then each line comes from memory. The rest is apart.
class ReadyCall {
 public:
  /// `spec` is that of the call, null where it has none.
  ReadyCall(KernelCall call, jit::Kernel kernel, const jit::KernelSpec* spec);
  ReadyCall(KernelCall call, NativeReduction native);

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
  /// Asks for the lines that a call reads, before it comes.
  [[gnu::always_inline]] void prefetch() const {
    constexpr std::size_t usual_bytes = 192;
    ask_for_lines(reinterpret_cast<const std::byte*>(frame_.get()), usual_bytes);
  }
  /// Its part of the message lies so much further back: in a message of several.
  void move_in_message(std::int64_t bytes);
  void set_varying(const std::vector<ScalarValue>& parameters);
  const KernelCall& call() const { return details_->call; }
  /// Whether runs choose if what it writes goes past the caches, where its layout lets it; not at first.
  bool may_go_past_caches() const { return details_->may_go_past_caches; }
  void go_past_caches(bool is_so) { frame_->arguments.goes_past_caches = is_so; }
  /// How many bytes that lie together at both ends it copies at a time; 0: it does not copy.
  std::int64_t run_bytes() const { return details_->run_bytes; }

  /// How the call falls into units, the smallest parts that can be run alone: unit u works on `unit_bytes` bytes of the
  /// message from `first_byte + u * unit_bytes` on.
  struct Units {
    std::int64_t first_byte = 0, unit_bytes = 0, count = 0;
  };
  /// Nothing where it cannot be run in parts.
  const std::optional<Units>& units() const { return details_->units; }
  /// The units [first, end), not none; `bytes` is where the first one's part of the message lies.
  std::uint64_t run_units(const std::vector<BoundMemory>& memory, std::byte* bytes, std::int64_t first,
                          std::int64_t end);
  /// The same where the message is in a slot, if the call copies one block: straight there in that way. Whether it
  /// does.
  bool copy_units(const std::vector<BoundMemory>& memory, std::byte* bytes, std::int64_t first, std::int64_t end,
                  transport::Stores stores) const;
  /// As run_units, some lines at a time, while the next ones come: for a message whose lines are far. The first ones
  /// were asked for.
  std::uint64_t run_units_ahead(const std::vector<BoundMemory>& memory, std::byte* bytes, std::int64_t first,
                                std::int64_t end);
  /// All of it, for calls that unpack, in units if it has any.
  std::uint64_t unpack_ahead(const std::vector<BoundMemory>& memory, const std::byte* message);

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

  enum class Form : std::uint8_t { kernel, copy, native };
  /// What a call reads. In the same memory follow the moving streams and the arrays of the arguments.
  struct Frame {
    jit::KernelArguments arguments;  ///< of a copy the bytes, as the one extent, and whether it goes past the caches
    jit::Kernel kernel;
    std::uint32_t moving = 0;  ///< so many streams
    Form form = Form::kernel;
    bool has_varying = false;

    std::span<Base> moving_streams() { return {reinterpret_cast<Base*>(this + 1), moving}; }
    std::byte** bases() { return const_cast<std::byte**>(arguments.bases); }
    const jit::ListEntry** lists() { return const_cast<const jit::ListEntry**>(arguments.lists); }
    std::uint64_t* scalars() { return const_cast<std::uint64_t*>(arguments.scalars); }
  };
  struct FreeFrame {
    void operator()(Frame* frame) const;
  };
  struct Details {
    KernelCall call;
    std::optional<NativeReduction> native;
    std::int64_t native_offset_bytes = 0;  ///< in the message
    std::int64_t run_bytes = 0;
    bool may_go_past_caches = false;
    std::optional<Units> units;
    std::vector<Level> levels;
    std::vector<std::int64_t> list_strides;  ///< by stream: what one iteration of the list adds
    std::vector<Position> positions;
    std::array<std::int64_t, most_levels> at{};  ///< the iteration of each level that is fixed
    std::vector<std::byte*> part_bases;          ///< arguments of a part
    std::vector<const jit::ListEntry*> part_lists;
    std::vector<std::int64_t> part_extents;
    std::vector<std::uint64_t> part_scalars;
  };

  void make_frame(jit::Kernel kernel, Form form);
  std::int64_t find_run_bytes(const jit::KernelSpec& spec) const;
  std::int64_t copied_bytes(const jit::KernelSpec& spec) const;
  bool can_go_past_caches(const jit::KernelSpec& spec) const;
  void set_stores(std::int64_t bytes);
  /// Parts that are packed are read at once.
  bool parts_go_past_caches() const {
    return frame_->arguments.goes_past_caches != 0 && details_->call.streams[0].kind == StreamKind::buffer;
  }
  void find_units(const jit::KernelSpec& spec);
  std::uint64_t cut(std::size_t level, std::int64_t first, std::int64_t end);
  std::uint64_t run_box(std::size_t level, std::int64_t first, std::int64_t end);
  static std::byte* address(const Base& b, const std::vector<BoundMemory>& memory, std::byte* message);
  void set_bases(const std::vector<BoundMemory>& memory, std::byte* message);

  std::unique_ptr<Frame, FreeFrame> frame_;
  std::unique_ptr<Details> details_;
};

}  // namespace kplan
