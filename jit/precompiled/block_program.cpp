// How it works: first every instruction gets its steps, with slots numbered in the order of their making; then slots
// get places in the scratch memory, those of values no longer needed being used again; and the block becomes as long as
// the scratch allows. Loads come before everything else and fills are done once, so their slots live from the start.
#include "jit/precompiled/block_program.hpp"

#include <algorithm>
#include <map>

namespace kplan::jit {
namespace {

constexpr int longest_block = 256, shortest_block = 16;

/// An instruction's values: one plane, or two of a complex number.
struct Value {
  Slot planes[2];
  int count = 1;
};

class Maker {
 public:
  explicit Maker(const KernelSpec& spec)
      : spec_(spec), last_use_(spec.instructions.size(), -1), values_(spec.instructions.size()) {}

  std::optional<BlockProgram> make() {
    find_uses();
    find_dependents();
    int tracks = static_cast<int>(spec_.streams.size());
    for (std::size_t i = 0; i < spec_.instructions.size(); ++i) {
      const Instruction& in = spec_.instructions[i];
      program_.counts_iterations =
          program_.counts_iterations || (in.opcode == Opcode::apply && divides(in.operation) && is_integer(in.type));
      if (in.opcode != Opcode::apply) values_[i] = reserve(in.type);
    }
    if (program_.counts_iterations) program_.iteration = reserve(Scalar::i64).planes[0];
    for (std::size_t i = 0; i < spec_.instructions.size(); ++i) {
      const Instruction& in = spec_.instructions[i];
      switch (in.opcode) {
        case Opcode::load: load(i); break;
        case Opcode::constant:
        case Opcode::scalar: fill(i); break;
        case Opcode::position:
          program_.numbers.push_back({in.slot, in.position_strides});
          program_.loads.push_back({block_count(), tracks++, 0, values_[i].planes[0]});
          break;
        case Opcode::apply: apply(i); break;
      }
    }
    if (program_.counts_iterations) program_.loads.push_back({block_count(), tracks++, 0, program_.iteration});
    for (const Output& out : spec_.outputs) store(out);
    program_.block =
        std::min(longest_block, BlockProgram::scratch_bytes / std::max(1, used_) / shortest_block * shortest_block);
    if (program_.block == 0 || tracks > NumericNest::most_tracks) return std::nullopt;
    place();
    return std::move(program_);
  }

 private:
  const Instruction& instruction(std::int32_t i) const { return spec_.instructions[static_cast<std::size_t>(i)]; }
  Value& value(std::int32_t i) { return values_[static_cast<std::size_t>(i)]; }

  void find_uses() {
    const auto never = static_cast<std::int32_t>(spec_.instructions.size());
    for (std::size_t i = 0; i < spec_.instructions.size(); ++i) {
      const Instruction& in = spec_.instructions[i];
      if (in.opcode == Opcode::constant || in.opcode == Opcode::scalar) last_use_[i] = never;
      if (in.opcode != Opcode::apply) continue;
      for (std::int32_t operand : {in.a, in.b, in.c, in.guard}) {
        auto& last = last_use_[static_cast<std::size_t>(std::max(operand, 0))];
        if (operand >= 0) last = std::max(last, static_cast<std::int32_t>(i));
      }
    }
    for (const Output& out : spec_.outputs) last_use_[static_cast<std::size_t>(out.instruction)] = never;
  }

  /// What comes from the target, where the order of iterations matters. Its operands are kept for as long.
  void find_dependents() {
    is_ordered_.assign(spec_.instructions.size(), false);
    if (spec_.is_injective) return;
    const auto never = static_cast<std::int32_t>(spec_.instructions.size());
    for (std::size_t i = 0; i < spec_.instructions.size(); ++i) {
      const Instruction& in = spec_.instructions[i];
      is_ordered_[i] = in.opcode == Opcode::load && in.stream == 0;
      if (in.opcode != Opcode::apply) continue;
      for (std::int32_t operand : {in.a, in.b, in.c, in.guard})
        if (operand >= 0 && is_ordered_[static_cast<std::size_t>(operand)]) is_ordered_[i] = true;
      if (!is_ordered_[i]) continue;
      last_use_[i] = never;
      for (std::int32_t operand : {in.a, in.b, in.c, in.guard})
        if (operand >= 0) last_use_[static_cast<std::size_t>(operand)] = never;
    }
  }

  /// Slots for one value; places are counted in bytes for each element of the block.
  Value reserve(Scalar type) {
    Value out;
    const auto bytes = static_cast<std::int32_t>(size_of(part_of(type)));
    out.count = is_complex(type) ? 2 : 1;
    auto& again = free_[bytes * out.count];
    std::int32_t at = used_;
    if (!again.empty()) {
      at = again.back();
      again.pop_back();
    } else {
      used_ += bytes * out.count;
    }
    for (int p = 0; p < out.count; ++p) out.planes[p] = {at + p * bytes, bytes};
    return out;
  }

  void release_after(std::int32_t user, std::int32_t operand) {
    if (operand < 0 || last_use_[static_cast<std::size_t>(operand)] != user) return;
    last_use_[static_cast<std::size_t>(operand)] = -1;  // named twice, released once
    const Value& v = value(operand);
    free_[v.planes[0].bytes * v.count].push_back(v.planes[0].offset);
  }

  void load(std::size_t i) {
    const Instruction& in = spec_.instructions[i];
    auto& steps = is_ordered_[i] ? program_.ordered_loads : program_.loads;
    const Value& v = values_[i];
    for (int p = 0; p < v.count; ++p) {
      const auto bytes = static_cast<std::size_t>(v.planes[p].bytes);
      steps.push_back({in.type == Scalar::boolean ? block_load_boolean() : block_load(bytes), in.stream,
                       static_cast<std::uint64_t>(in.offset_bytes) + static_cast<std::size_t>(p) * bytes, v.planes[p]});
    }
    if (in.stream == 0) touch(in.offset_bytes, static_cast<std::int64_t>(size_of(in.type)));
  }

  void fill(std::size_t i) {
    const Instruction& in = spec_.instructions[i];
    const Value& v = values_[i];
    for (int p = 0; p < v.count; ++p) {
      FillStep step;
      step.slot = v.planes[p];
      step.is_boolean = in.type == Scalar::boolean;
      step.at = p * v.planes[p].bytes;
      if (in.opcode == Opcode::scalar) step.scalar_slot = in.slot;
      else step.bits = step.at == 4 ? in.bits[0] >> 32 : in.bits[step.at / 8];
      program_.fills.push_back(step);
    }
  }

  void apply(std::size_t i) {
    const Instruction& in = spec_.instructions[i];
    const Scalar operand = instruction(in.a).type;
    values_[i] = reserve(in.type);  // before the operands' slots are free: no function works in place
    const Value &out = values_[i], &a = value(in.a);
    const int operands = operand_count(in.operation);
    const Value none;
    const Value &b = operands > 1 ? value(in.b) : none, &c = operands > 2 ? value(in.c) : none;
    const Slot guard = in.guard >= 0 ? value(in.guard).planes[0] : Slot();
    auto& steps = is_ordered_[i] ? program_.ordered_applies : program_.applies;
    if (in.operation == Operation::select) {
      const auto select = block_function(in.operation, operand, part_of(in.type));
      for (int p = 0; p < out.count; ++p)
        steps.push_back({select, out.planes[p], a.planes[0], b.planes[p], c.planes[p], guard});
    } else if (in.operation == Operation::convert && in.type != Scalar::boolean) {
      const auto convert = block_function(in.operation, part_of(operand), part_of(in.type));
      for (int p = 0; p < std::min(out.count, a.count); ++p)
        steps.push_back({convert, out.planes[p], a.planes[p], {}, {}, {}});
      const auto zeros = in.type == Scalar::c64 ? zero_plane<float> : zero_plane<double>;
      if (out.count > a.count) steps.push_back({zeros, out.planes[1], a.planes[0], {}, {}, {}});
    } else {
      steps.push_back({block_function(in.operation, operand, in.type), out.planes[0], a.planes[0], b.planes[0],
                       c.planes[0], guard});
    }
    if (last_use_[i] < 0) last_use_[i] = static_cast<std::int32_t>(i);  // used by nobody
    for (std::int32_t v : {in.a, in.b, in.c, in.guard, static_cast<std::int32_t>(i)})
      release_after(static_cast<std::int32_t>(i), v);
  }

  /// The imaginary part of what was a real number.
  template <class T>
  static int zero_plane(const BlockOperands& o) {
    std::fill_n(reinterpret_cast<T*>(o.out), o.count, T(0));
    return o.count;
  }

  void store(const Output& out) {
    const Value& v = value(out.instruction);
    for (int p = 0; p < v.count; ++p) {
      const auto bytes = static_cast<std::size_t>(v.planes[p].bytes);
      program_.stores.push_back({block_store(bytes), 0,
                                 static_cast<std::uint64_t>(out.offset_bytes) + static_cast<std::size_t>(p) * bytes,
                                 v.planes[p]});
    }
    touch(out.offset_bytes, static_cast<std::int64_t>(size_of(instruction(out.instruction).type)));
  }

  void touch(std::int64_t offset, std::int64_t bytes) {
    const bool is_first = program_.target_last == program_.target_first;
    program_.target_first = is_first ? offset : std::min(program_.target_first, offset);
    program_.target_last = is_first ? offset + bytes : std::max(program_.target_last, offset + bytes);
  }

  /// Bytes for each element become bytes in the scratch.
  void place() {
    const auto scale = [&](Slot& slot) { slot.offset *= slot.offset < 0 ? 1 : program_.block; };
    scale(program_.iteration);
    for (FillStep& s : program_.fills) scale(s.slot);
    for (auto* steps : {&program_.loads, &program_.ordered_loads, &program_.stores})
      for (MoveStep& s : *steps) scale(s.slot);
    for (auto* steps : {&program_.applies, &program_.ordered_applies})
      for (ApplyStep& s : *steps)
        for (Slot* slot : {&s.out, &s.a, &s.b, &s.c, &s.guard}) scale(*slot);
  }

  const KernelSpec& spec_;
  BlockProgram program_;
  std::vector<std::int32_t> last_use_;
  std::vector<bool> is_ordered_;
  std::vector<Value> values_;
  std::map<std::int32_t, std::vector<std::int32_t>> free_;  ///< places to use again, by bytes
  std::int32_t used_ = 0;
};

}  // namespace

std::optional<BlockProgram> BlockProgram::make(const KernelSpec& spec) {
  if (spec.streams.size() > NumericNest::most_tracks) return std::nullopt;
  return Maker(spec).make();
}

}  // namespace kplan::jit
