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
    make_each(calls, /*is_value=*/true, [&](ReadyCall& call) { return call(memory, message); });
  }
  /// Applies what a message has brought. `has_values`: they are evaluated only here, and there is no message.
  [[gnu::hot]] void unpack(std::span<ReadyCall> calls, const std::byte* message, bool has_values) const {
    make_each(calls, has_values, [&](ReadyCall& call) { return call.unpack(memory, message); });
  }
  /// The same for a message whose lines are far.
  void unpack_ahead(std::span<ReadyCall> calls, const std::byte* message) const {
    make_each(calls, /*is_value=*/false, [&](ReadyCall& call) { return call.unpack_ahead(memory, message); });
  }

 private:
  /// Each asks for what the next one reads.
  template <class F>
  [[gnu::always_inline]] void make_each(std::span<ReadyCall> calls, bool is_value, const F& make) const {
    for (std::size_t k = 0; k < calls.size(); ++k) {
      if (k + 1 < calls.size()) calls[k + 1].prefetch();
      if (make(calls[k]) != 0) notes.note_zero_divisor(calls[k], is_value);
    }
  }
};

}  // namespace kplan
