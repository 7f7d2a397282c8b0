// How it works: a part of a nest that begins and ends anywhere is a few boxes: what is left of the first iteration of a
// loop, whole iterations, and the beginning of the last, each cut again one loop further in. Loops inside the first one
// whose extent is constant in the code stay whole: they are the units.
#include "engine/runtime/ready_call.hpp"

#include <algorithm>
#include <cstring>

#include "kplan/transport.hpp"
#include "transports/environment.hpp"

namespace kplan {
namespace {

/// Addresses on the way to one that is inside may lie outside, where pointers must not.
std::byte* moved(std::byte* address, std::int64_t bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(address) + static_cast<std::uintptr_t>(bytes));
}

[[gnu::hot]] inline void copy(std::byte* to, const std::byte* from, std::int64_t bytes, bool goes_past_caches) {
  const auto count = static_cast<std::size_t>(bytes);
  if (goes_past_caches) transport::copy_to_slot(to, from, count, transport::Stores::non_temporal);
  else std::memcpy(to, from, count);
}

/// How far the elements of a stream reach that one iteration meets.
std::int64_t bytes_at_once(const jit::KernelSpec& spec, std::size_t stream) {
  std::int64_t out = spec.copy_bytes;
  const auto note = [&](std::int64_t offset_bytes, const jit::Instruction& i) {
    out = std::max(out, offset_bytes + static_cast<std::int64_t>(size_of(i.type)));
  };
  for (const jit::Instruction& i : spec.instructions)
    if (i.opcode == jit::Opcode::load && std::cmp_equal(i.stream, stream)) note(i.offset_bytes, i);
  if (stream > 0) return out;
  for (const jit::Output& o : spec.outputs)
    note(o.offset_bytes, spec.instructions[static_cast<std::size_t>(o.instruction)]);
  return out;
}

}  // namespace

ReadyCall::ReadyCall(KernelCall call, jit::Kernel kernel, const jit::KernelSpec* spec)
    : call_(std::move(call)), kernel_(std::move(kernel)) {
  for (StreamUse& s : call_.streams) {
    // Kernels never write a table: it is always a source.
    bases_.push_back(reinterpret_cast<std::byte*>(s.table.data()));
    lists_.push_back(s.list.empty() ? nullptr : s.list.data());
    const auto number = static_cast<std::uint32_t>(bases_.size() - 1);
    if (s.kind != StreamKind::table)
      moving_.push_back({number, s.kind == StreamKind::buffer ? s.buffer : -1, s.offset_bytes});
  }
  if (spec) {
    run_bytes_ = find_run_bytes(*spec);
    set_stores(copied_bytes(*spec));
    units_ = find_units(*spec);
    return;
  }
  run_bytes_ = call_.copy_bytes;
  set_stores(call_.copy_bytes);
  for (const StreamUse& s : call_.streams)
    if (s.kind == StreamKind::message) units_ = Units{s.offset_bytes, 1, call_.copy_bytes};
}

ReadyCall::ReadyCall(KernelCall call, NativeReduction native) : call_(std::move(call)), native_(std::move(native)) {}

std::int64_t ReadyCall::find_run_bytes(const jit::KernelSpec& spec) const {
  const std::size_t dimensions = spec.extents.size();
  std::int64_t out = spec.copy_bytes;
  for (std::size_t d = dimensions; d-- > 0 && out > 0; out *= call_.extents[d])
    if (call_.extents[d] != 1 && (call_.strides_bytes[d] != out || call_.strides_bytes[dimensions + d] != out)) break;
  return out;
}

void ReadyCall::set_stores(std::int64_t bytes) {
  // Read once: there may be thousands of calls.
  static const std::size_t least_bytes = transport::past_caches_bytes_from_environment();
  goes_past_caches_ = least_bytes > 0 && std::cmp_greater_equal(bytes, least_bytes);
}

std::int64_t ReadyCall::copied_bytes(const jit::KernelSpec& spec) const {
  std::int64_t out = spec.copy_bytes * (spec.has_lists() ? call_.list_length : 1);
  for (const std::int64_t extent : call_.extents) out *= extent;
  return out;
}

std::optional<ReadyCall::Units> ReadyCall::find_units(const jit::KernelSpec& spec) {
  const auto message = std::ranges::find(call_.streams, StreamKind::message, &StreamUse::kind);
  if (message == call_.streams.end()) return std::nullopt;
  const auto m = static_cast<std::size_t>(message - call_.streams.begin());
  const std::size_t dimensions = spec.extents.size();
  if (spec.streams[m].is_indexed || dimensions + 1 > most_levels) return std::nullopt;
  // The message must be walked from its first byte to its last.
  std::int64_t inside = 0;
  const std::int64_t at_once = bytes_at_once(spec, m);
  for (std::size_t d = dimensions; d-- > 0;) {
    const std::int64_t stride = call_.strides_bytes[m * dimensions + d];
    if (inside == 0) inside = stride;
    if ((stride != inside || stride < at_once) && call_.extents[d] > 1) return std::nullopt;
    inside *= call_.extents[d];
  }
  // A transposition goes across the lines of its buffer: parts of few rows would load each line again and again. What
  // fills a line must be short beside a part.
  constexpr std::int64_t line_bytes = 64, most_bytes_for_a_line = 8192;
  for (std::size_t k = 0; k < call_.streams.size() && dimensions > 1; ++k)
    for (std::size_t d = 0; d + 1 < dimensions; ++d) {
      const std::int64_t step = std::abs(call_.strides_bytes[k * dimensions + d]);
      if (call_.streams[k].kind != StreamKind::buffer || call_.extents[d] == 1 || step == 0 ||
          step >= std::abs(call_.strides_bytes[k * dimensions + dimensions - 1]))
        continue;
      const std::int64_t rows = std::clamp<std::int64_t>(line_bytes / step, 1, call_.extents[d]);
      if (rows * std::abs(call_.strides_bytes[m * dimensions + d]) > most_bytes_for_a_line) return std::nullopt;
    }
  const std::int64_t list_stride = spec.streams[m].list_stride_bytes;
  const bool has_list = spec.has_lists();
  if (inside == 0 && has_list) inside = list_stride;
  if (inside < std::max<std::int64_t>(at_once, 1) || (has_list && call_.list_length > 1 && list_stride != inside))
    return std::nullopt;

  Units out{message->offset_bytes, inside, 1};
  std::size_t free_dimensions = 0;
  while (free_dimensions < dimensions && spec.extents[free_dimensions] == jit::at_run_time) ++free_dimensions;
  for (std::size_t d = 0; d < free_dimensions; ++d) out.unit_bytes /= std::max<std::int64_t>(call_.extents[d], 1);
  for (std::size_t d = free_dimensions; d-- > 0;) {
    levels_.insert(levels_.begin(), {static_cast<int>(d), call_.extents[d], out.count});
    out.count *= call_.extents[d];
  }
  if (has_list) {
    levels_.insert(levels_.begin(), {-1, call_.list_length, out.count});
    out.count *= call_.list_length;
  }
  for (const jit::Stream& s : spec.streams) list_strides_.push_back(s.list_stride_bytes);
  for (const jit::Instruction& i : spec.instructions)
    if (i.opcode == jit::Opcode::position) positions_.push_back({static_cast<std::size_t>(i.slot), i.position_strides});
  part_bases_.resize(bases_.size());
  part_lists_.resize(lists_.size());
  part_extents_.resize(dimensions);
  part_scalars_.resize(call_.scalars.size());
  return out;
}

[[gnu::always_inline]] inline std::byte* ReadyCall::address(const Base& b, const std::vector<BoundMemory>& memory,
                                                            std::byte* message) {
  return (b.buffer < 0 ? message : memory[static_cast<std::size_t>(b.buffer)].base) + b.offset_bytes;
}

[[gnu::hot]] inline void ReadyCall::set_bases(const std::vector<BoundMemory>& memory, std::byte* message) {
  for (const Base& b : moving_) bases_[b.stream] = address(b, memory, message);
}

[[gnu::hot]] std::uint64_t ReadyCall::operator()(const std::vector<BoundMemory>& memory, std::byte* message) {
  if (native_) {
    (*native_)(memory[static_cast<std::size_t>(call_.native_buffer)].base, message + native_offset_bytes_);
    return 0;
  }
  if (call_.spec < 0) {  // both streams move
    copy(address(moving_[0], memory, message), address(moving_[1], memory, message), call_.copy_bytes,
         goes_past_caches_);
    return 0;
  }
  set_bases(memory, message);
  const jit::KernelArguments arguments{
      bases_.data(),        lists_.data(),    call_.list_length, call_.extents.data(), call_.strides_bytes.data(),
      call_.scalars.data(), goes_past_caches_};
  return kernel_(arguments);
}

std::uint64_t ReadyCall::unpack_listed(const std::vector<BoundMemory>& memory, const std::byte* message,
                                       std::span<const jit::ListEntry> places) {
  set_bases(memory, const_cast<std::byte*>(message));
  lists_[0] = places.data();
  const jit::KernelArguments arguments{
      bases_.data(),       lists_.data(), std::ssize(places), call_.extents.data(), call_.strides_bytes.data(),
      call_.scalars.data()};
  return kernel_(arguments);
}

std::uint64_t ReadyCall::run_units(const std::vector<BoundMemory>& memory, std::byte* bytes, std::int64_t first,
                                   std::int64_t end) {
  const std::int64_t skipped = first * units_->unit_bytes;
  if (call_.spec < 0) {
    set_bases(memory, moved(bytes, -units_->first_byte));
    for (std::size_t k = 0; k < 2; ++k)
      if (call_.streams[k].kind != StreamKind::message) bases_[k] += skipped;
    copy(bases_[0], bases_[1], end - first, parts_go_past_caches());
    return 0;
  }
  // Bases are those of unit 0; that of the message may lie before the memory there is, and so is only reckoned with.
  set_bases(memory, moved(bytes, -units_->first_byte));
  for (std::size_t k = 0; k < bases_.size(); ++k)
    if (call_.streams[k].kind == StreamKind::message) bases_[k] = moved(bases_[k], -skipped);
  return levels_.empty() ? run_box(0, 0, 1) : cut(0, first, end);
}

std::uint64_t ReadyCall::cut(std::size_t level, std::int64_t first, std::int64_t end) {
  const std::int64_t units = levels_[level].units;
  std::int64_t i = first / units;
  const std::int64_t begun = first % units, last = end / units, left = end % units;
  std::uint64_t fault = 0;
  if (begun != 0 || i == last) {
    at_[level] = i;
    fault = cut(level + 1, begun, i == last ? left : units);
    if (i == last) return fault;
    ++i;
  }
  if (i < last) fault = std::max(fault, run_box(level, i, last));
  if (left > 0) {
    at_[level] = last;
    fault = std::max(fault, cut(level + 1, 0, left));
  }
  return fault;
}

/// Iterations [first, end) of a level, in the iterations of the levels around it that are fixed.
std::uint64_t ReadyCall::run_box(std::size_t level, std::int64_t first, std::int64_t end) {
  part_bases_ = bases_;
  part_lists_ = lists_;
  part_scalars_ = call_.scalars;
  part_extents_ = call_.extents;
  std::int64_t list_length = call_.list_length;
  const std::size_t dimensions = part_extents_.size();
  for (std::size_t l = 0; l < levels_.size() && l <= level; ++l) {
    const std::int64_t from = l == level ? first : at_[l], count = l == level ? end - first : 1;
    if (levels_[l].dimension < 0) {
      list_length = count;
      for (std::size_t k = 0; k < part_bases_.size(); ++k) {
        if (part_lists_[k]) part_lists_[k] += from;
        part_bases_[k] = moved(part_bases_[k], from * list_strides_[k]);
      }
      continue;
    }
    const auto d = static_cast<std::size_t>(levels_[l].dimension);
    part_extents_[d] = count;
    for (std::size_t k = 0; k < part_bases_.size(); ++k)
      part_bases_[k] = moved(part_bases_[k], from * call_.strides_bytes[k * dimensions + d]);
    for (const Position& p : positions_) part_scalars_[2 * p.slot] += static_cast<std::uint64_t>(from * p.strides[d]);
  }
  const jit::KernelArguments arguments{part_bases_.data(),    part_lists_.data(),         list_length,
                                       part_extents_.data(),  call_.strides_bytes.data(), part_scalars_.data(),
                                       parts_go_past_caches()};
  return kernel_(arguments);
}

void ReadyCall::move_in_message(std::int64_t bytes) {
  if (native_) native_offset_bytes_ += bytes;
  for (Base& b : moving_)
    if (b.buffer < 0) b.offset_bytes += bytes;
  for (StreamUse& s : call_.streams)
    if (s.kind == StreamKind::message) s.offset_bytes += bytes;
  if (units_) units_->first_byte += bytes;
}

[[gnu::hot]] void ReadyCall::set_varying(const std::vector<ScalarValue>& parameters) {
  for (const auto& [slot, parameter] : call_.varying_scalars) {
    const ScalarValue& v = parameters[static_cast<std::size_t>(parameter)];
    call_.scalars[static_cast<std::size_t>(2 * slot)] = v.bits[0];
    call_.scalars[static_cast<std::size_t>(2 * slot + 1)] = v.bits[1];
  }
}

}  // namespace kplan
