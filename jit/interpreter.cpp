// How it works: literals and arguments are first brought into one numeric nest; an odometer then walks it, and
// one address for each stream moves along. Copies drop their contiguous inner dimensions into one memcpy.
#include <cstring>
#include <optional>

#include "jit/kernel_spec.hpp"

namespace kplan::jit {
namespace {

/// The nest with all numbers known; dimension 0 is `o` when there are lists.
struct Nest {
  std::vector<std::int64_t> extents;
  std::vector<std::vector<std::int64_t>> strides;  ///< [stream][dimension]
  bool has_lists = false;
  bool is_empty = false;
};

Nest numeric(const KernelSpec& spec, const KernelArguments& arguments) {
  Nest nest;
  nest.has_lists = spec.has_lists();
  const std::size_t rank = spec.extents.size();
  if (nest.has_lists) nest.extents.push_back(arguments.list_length);
  for (std::size_t d = 0; d < rank; ++d) {
    nest.extents.push_back(spec.extents[d] == at_run_time ? arguments.extents[d] : spec.extents[d]);
  }
  for (std::int64_t extent : nest.extents) nest.is_empty = nest.is_empty || extent <= 0;
  for (std::size_t s = 0; s < spec.streams.size(); ++s) {
    std::vector<std::int64_t> strides;
    if (nest.has_lists) strides.push_back(spec.streams[s].list_stride_bytes);
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t stride = spec.streams[s].strides_bytes[d];
      strides.push_back(stride == at_run_time ? arguments.strides_bytes[s * rank + d] : stride);
    }
    nest.strides.push_back(std::move(strides));
  }
  return nest;
}

/// Walks the nest in its order; `offsets[s]` is the byte offset of stream s, its list's entry included.
class Odometer {
 public:
  Odometer(const Nest& nest, const KernelSpec& spec, const KernelArguments& arguments)
      : positions(nest.extents.size(), 0), offsets(spec.streams.size(), 0), nest_(nest) {
    for (std::size_t s = 0; s < spec.streams.size(); ++s) {
      lists_.push_back(spec.streams[s].is_indexed ? arguments.lists[s] : nullptr);
      scales_.push_back(spec.streams[s].list_scale_bytes);
    }
    add_lists(1);
  }
  bool next() {
    for (std::size_t d = positions.size(); d-- > 0;) {
      const bool is_list = d == 0 && nest_.has_lists;
      if (is_list) add_lists(-1);
      const bool wraps = ++positions[d] == nest_.extents[d];
      const std::int64_t steps = wraps ? 1 - nest_.extents[d] : 1;
      for (std::size_t s = 0; s < offsets.size(); ++s) offsets[s] += steps * nest_.strides[s][d];
      if (!wraps) {
        if (is_list) add_lists(1);
        return true;
      }
      positions[d] = 0;
    }
    return false;
  }

  std::vector<std::int64_t> positions, offsets;

 private:
  void add_lists(std::int64_t sign) {
    if (!nest_.has_lists) return;
    for (std::size_t s = 0; s < offsets.size(); ++s) {
      if (lists_[s] != nullptr) offsets[s] += sign * scales_[s] * lists_[s][positions[0]];
    }
  }

  const Nest& nest_;
  std::vector<const ListEntry*> lists_;
  std::vector<std::int64_t> scales_;
};

void copy(const KernelSpec& spec, const KernelArguments& arguments, Nest& nest) {
  auto bytes = static_cast<std::size_t>(spec.copy_bytes);
  const std::size_t outermost = nest.has_lists ? 1 : 0;
  while (nest.extents.size() > outermost) {
    const auto run = static_cast<std::int64_t>(bytes);
    const bool is_single = nest.extents.back() == 1;
    if (!is_single && (nest.strides[0].back() != run || nest.strides[1].back() != run)) break;
    bytes *= static_cast<std::size_t>(nest.extents.back());
    nest.extents.pop_back();
    for (auto& strides : nest.strides) strides.pop_back();
  }
  Odometer at(nest, spec, arguments);
  do {
    std::memcpy(arguments.bases[0] + at.offsets[0], arguments.bases[1] + at.offsets[1], bytes);
  } while (at.next());
}

std::int64_t position_value(const Instruction& in, const Odometer& at, bool has_lists,
                            const KernelArguments& arguments) {
  std::uint64_t sum = in.slot >= 0 ? arguments.scalars[2 * in.slot] : 0;
  for (std::size_t d = 0; d < in.position_strides.size(); ++d) {
    sum += static_cast<std::uint64_t>(in.position_strides[d]) *
           static_cast<std::uint64_t>(at.positions[d + (has_lists ? 1 : 0)]);
  }
  return static_cast<std::int64_t>(sum);
}

/// Nothing when a wanted divisor is zero.
std::optional<ScalarValue> applied(const Instruction& in, const std::vector<ScalarValue>& values) {
  const auto& a = values[static_cast<std::size_t>(in.a)];
  const auto& b = in.b >= 0 ? values[static_cast<std::size_t>(in.b)] : a;
  const auto& c = in.c >= 0 ? values[static_cast<std::size_t>(in.c)] : b;
  ScalarValue result;
  const bool divided = apply(in.operation, in.type, a, b, c, result);
  if (!divided && (in.guard < 0 || values[static_cast<std::size_t>(in.guard)].as_boolean())) return std::nullopt;
  return result;
}

/// Runs one iteration; false when a wanted divisor is zero.
bool run_iteration(const KernelSpec& spec, const KernelArguments& arguments, const Odometer& at, bool has_lists,
                   std::vector<ScalarValue>& values) {
  for (std::size_t i = 0; i < spec.instructions.size(); ++i) {
    const Instruction& in = spec.instructions[i];
    switch (in.opcode) {
      case Opcode::load: {
        const auto s = static_cast<std::size_t>(in.stream);
        values[i] = ScalarValue::load(in.type, arguments.bases[s] + at.offsets[s] + in.offset_bytes);
        break;
      }
      case Opcode::constant: values[i] = ScalarValue::load(in.type, in.bits); break;
      case Opcode::scalar: values[i] = ScalarValue::load(in.type, arguments.scalars + 2 * in.slot); break;
      case Opcode::position: values[i] = ScalarValue::integer(position_value(in, at, has_lists, arguments)); break;
      case Opcode::apply: {
        const auto result = applied(in, values);
        if (!result) return false;
        values[i] = *result;
        break;
      }
    }
  }
  for (const Output& out : spec.outputs) {
    values[static_cast<std::size_t>(out.instruction)].store(arguments.bases[0] + at.offsets[0] + out.offset_bytes);
  }
  return true;
}

}  // namespace

std::uint64_t interpret(const KernelSpec& spec, const KernelArguments& arguments) {
  Nest nest = numeric(spec, arguments);
  if (nest.is_empty) return 0;
  if (spec.copy_bytes != 0) {
    copy(spec, arguments, nest);
    return 0;
  }
  std::vector<ScalarValue> values(spec.instructions.size());
  Odometer at(nest, spec, arguments);
  std::uint64_t iteration = 1;
  do {
    if (!run_iteration(spec, arguments, at, nest.has_lists, values)) return iteration;
    ++iteration;
  } while (at.next());
  return 0;
}

}  // namespace kplan::jit
