#pragma once
// What a run gives its statements, and how they make their kernel calls.

#include <span>
#include <vector>

#include "engine/analysis/bound_plan.hpp"
#include "engine/runtime/native_reduction.hpp"
#include "engine/runtime/ready_call.hpp"

namespace kplan {

/// Where a run takes note of what fails while others wait: it is thrown at the end.
class FaultNotes {
 public:
  /// A kernel has met a zero divisor in a value, or in an operator. The first of a run counts.
  virtual void note_zero_divisor(const ReadyCall& call, bool is_value) = 0;

 protected:
  ~FaultNotes() = default;
};

struct RunContext {
  const BoundPlan& bound;  ///< with the contents of varying buffers
  const std::vector<BoundMemory>& memory;
  const NativeOperators& operators;
  FaultNotes& notes;

  /// Makes a message of values.
  [[gnu::hot]] void pack(std::span<ReadyCall> calls, std::byte* message) const {
    for (std::size_t k = 0; k < calls.size(); ++k) {
      if (k + 1 < calls.size()) calls[k + 1].prefetch();
      if (calls[k](memory, message) != 0) notes.note_zero_divisor(calls[k], /*is_value=*/true);
    }
  }
  /// Applies what a message has brought. `has_values`: they are evaluated only here, and there is no message.
  [[gnu::hot]] void unpack(std::span<ReadyCall> calls, const std::byte* message, bool has_values) const {
    for (std::size_t k = 0; k < calls.size(); ++k) {
      if (k + 1 < calls.size()) calls[k + 1].prefetch();
      if (calls[k].unpack(memory, message) != 0) notes.note_zero_divisor(calls[k], has_values);
    }
  }
  /// The same for a message whose lines are far.
  void unpack_ahead(std::span<ReadyCall> calls, const std::byte* message) const {
    for (ReadyCall& call : calls)
      if (call.unpack_ahead(memory, message) != 0) notes.note_zero_divisor(call, /*is_value=*/false);
  }
};

}  // namespace kplan
