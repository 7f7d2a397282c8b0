#pragma once
// One call of a kernel, ready but for the addresses: which spec, which memory each stream walks, and its run-time
// arguments. Contiguous data takes no kernel: a call without spec is one block copy.

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/lower/cells.hpp"
#include "engine/lower/joined_ends.hpp"
#include "jit/kernel_spec.hpp"

namespace kplan {

/// What memory a stream lies in.
enum class StreamKind : std::uint8_t { message, buffer, table };

struct StreamUse {
  StreamKind kind = StreamKind::message;
  int buffer = -1;                ///< buffer
  std::int64_t offset_bytes = 0;  ///< from its start
  Unfilled<jit::ListEntry> list;  ///< when the stream is indexed
  Words table;                    ///< table: the memory itself
};

struct KernelCall {
  int spec = -1;  ///< number in the list of specs; -1: copy `copy_bytes` from stream 1 to stream 0
  std::int64_t copy_bytes = 0;
  std::vector<StreamUse> streams;
  std::int64_t list_length = 1;
  std::vector<std::int64_t> extents, strides_bytes;
  std::vector<std::uint64_t> scalars;                ///< two words a slot
  std::vector<std::pair<int, int>> varying_scalars;  ///< slot, parameter: filled in at every run
  int statement = 0, reduction = 0;
  /// An operator that is a C++ function: no spec; tracks of the place and of the message, in bytes.
  bool is_native = false;
  int native_buffer = -1;
  Piece native;
};

/// The specs that a plan needs, each once.
class SpecTable {
 public:
  int add(jit::KernelSpec spec);
  const std::vector<jit::KernelSpec>& specs() const { return specs_; }

 private:
  std::vector<jit::KernelSpec> specs_;
  std::unordered_map<std::string, int> numbers_;  ///< by key
};

/// What is constant in a kernel's code; the rest are arguments.
enum class Literals : std::uint8_t {
  shapes,     ///< strides and short extents
  extents,    ///< short extents, and that innermost elements lie side by side; for so many shapes that one kernel had
              ///< better serve all
  innermost,  ///< the innermost stride: the pattern varies, and code that was made for one run should serve the next
};

/// Makes kernel calls of the parts of a statement's messages.
class Lowering {
 public:
  Lowering(const BoundPlan& bound, const StatementSchedule& schedule, SpecTable& specs, Literals literals);

  // Each adds a call, or several where a list reaches further than its entries can say.

  /// Reads values and writes the message.
  void pack(const MessagePart& part, std::vector<KernelCall>& to);
  /// Reads the message and updates places.
  void unpack(const MessagePart& part, std::vector<KernelCall>& to);
  /// Reads values and updates places, for parts that join_ends made. Not for varying patterns.
  void move(const MessagePart& from, const MessagePart& to, std::vector<KernelCall>& calls);
  /// Reads values and the message and updates their places with one after the other, for shares that meet_shares
  /// brought together. Nothing for records, for C++ functions, and where a divisor may be zero.
  std::optional<KernelCall> merge(const MetShares& shares, bool is_own_first);

 private:
  struct Build;
  std::int64_t extent(int buffer) const;
  /// A part as its kernels walk it: itself, or its elements in cells.
  struct Walked {
    const MessagePart* part;
    Distances distances;  ///< none: they are single elements
    std::unique_ptr<const MessagePart> in_cells;
  };
  Walked walked(const MessagePart& part, const ElementType& type, bool is_copy, std::size_t buffers) const;
  KernelCall pack(const MessagePart& part, const Distances& distances);
  KernelCall unpack(const MessagePart& part, const Distances& distances);
  KernelCall move(const MessagePart& from, const MessagePart& to, const Distances& distances);
  const Piece& shaped(const Piece& piece, const std::vector<std::int64_t>& element_bytes, bool is_in_any_order,
                      bool is_written);
  const BoundPlan& bound_;
  const Statement& statement_;
  const StatementSchedule& schedule_;
  SpecTable& specs_;
  Literals literals_;
  std::int64_t message_bytes_ = 0;  ///< of the longest one
  Piece shaped_;                    ///< the piece at hand in another shape
};

}  // namespace kplan
