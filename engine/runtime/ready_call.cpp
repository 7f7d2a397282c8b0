// How it works: a part of a nest that begins and ends anywhere is a few boxes: what is left of the first iteration of a
// loop, whole iterations, and the beginning of the last, each cut again one loop further in. Loops inside the first one
// whose extent is constant in the code stay whole: they are the units.
#include "engine/runtime/ready_call.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>

#include "jit/long_copy.hpp"
#include "transports/environment.hpp"

namespace kplan {
namespace {

constexpr std::align_val_t frame_alignment{64};  ///< a cache line

/// Addresses on the way to one that is inside may lie outside, where pointers must not.
std::byte* moved(std::byte* address, std::int64_t bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(address) + static_cast<std::uintptr_t>(bytes));
}

[[gnu::hot]] inline void copy(std::byte* to, const std::byte* from, std::int64_t bytes, bool goes_past_caches) {
  const auto count = static_cast<std::size_t>(bytes);
  if (goes_past_caches) transport::copy_to_slot(to, from, count, transport::Stores::non_temporal);
  else jit::copy_long(to, from, count);
}

/// Lists of so many entries name more lines than the nearer caches hold: a megabyte.
constexpr std::int64_t fewest_far = 16384;

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
    : details_(std::make_unique<Details>()) {
  details_->call = std::move(call);
  make_frame(std::move(kernel), spec ? Form::kernel : Form::copy);
  if (spec) {
    details_->run_bytes = find_run_bytes(*spec);
    set_stores(can_go_past_caches(*spec) ? copied_bytes(*spec) : 0);
    find_units(*spec);
    return;
  }
  const KernelCall& copy = details_->call;
  details_->run_bytes = copy.copy_bytes;
  set_stores(copy.copy_bytes);
  for (const StreamUse& s : copy.streams)
    if (s.kind == StreamKind::message) details_->units = Units{s.offset_bytes, 1, copy.copy_bytes};
}

ReadyCall::ReadyCall(KernelCall call, NativeReduction native) : details_(std::make_unique<Details>()) {
  details_->call = std::move(call);
  details_->native = std::move(native);
  make_frame({}, Form::native);
}

void ReadyCall::make_frame(jit::Kernel kernel, Form form) {
  KernelCall& call = details_->call;
  std::vector<Base> moving;
  std::vector<std::byte*> bases;
  std::vector<const jit::ListEntry*> lists;
  for (StreamUse& s : call.streams) {
    const auto number = static_cast<std::uint32_t>(bases.size());
    // Kernels never write a table: it is always a source.
    bases.push_back(reinterpret_cast<std::byte*>(s.table.data()));
    lists.push_back(s.list.empty() ? nullptr : s.list.data());
    if (s.kind != StreamKind::table)
      moving.push_back({number, s.kind == StreamKind::buffer ? s.buffer : -1, s.offset_bytes});
  }
  const std::vector<std::int64_t> extents = form == Form::copy ? std::vector{call.copy_bytes} : call.extents;
  const auto bytes_of = [](const auto&... arrays) { return (std::span(arrays).size_bytes() + ...); };
  const std::size_t bytes = sizeof(Frame) + bytes_of(moving, bases, extents, call.strides_bytes, call.scalars, lists);

  auto* next = static_cast<std::byte*>(::operator new(bytes, frame_alignment));
  frame_.reset(new (next) Frame);
  next += sizeof(Frame);
  const auto put = [&next]<class T>(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= alignof(Frame) && sizeof(T) % alignof(Frame) == 0);
    T* const at = reinterpret_cast<T*>(next);
    std::ranges::uninitialized_copy(values, std::span(at, values.size()));
    next += std::span(values).size_bytes();
    return at;
  };
  put(moving);
  frame_->arguments.bases = put(bases);
  frame_->arguments.extents = put(extents);
  frame_->arguments.strides_bytes = put(call.strides_bytes);
  frame_->arguments.scalars = put(call.scalars);
  frame_->arguments.lists = put(lists);
  frame_->arguments.list_length = call.list_length;
  frame_->arguments.lists_go_far = call.list_length >= fewest_far;
  frame_->kernel = std::move(kernel);
  frame_->moving = static_cast<std::uint32_t>(moving.size());
  frame_->form = form;
  frame_->has_varying = !call.varying_scalars.empty();
}

void ReadyCall::FreeFrame::operator()(Frame* frame) const {
  std::destroy_at(frame);
  ::operator delete(frame, frame_alignment);
}

std::int64_t ReadyCall::find_run_bytes(const jit::KernelSpec& spec) const {
  const KernelCall& call = details_->call;
  const std::size_t dimensions = spec.extents.size();
  std::int64_t out = spec.copy_bytes;
  for (std::size_t d = dimensions; d-- > 0 && out > 0; out *= call.extents[d])
    if (call.extents[d] != 1 && (call.strides_bytes[d] != out || call.strides_bytes[dimensions + d] != out)) break;
  return out;
}

/// Whether the kernel can write the target past the caches.
bool ReadyCall::can_go_past_caches(const jit::KernelSpec& spec) const {
  const KernelCall& call = details_->call;
  const std::size_t dimensions = spec.extents.size();
  const auto lies_along_one = [&](std::size_t stream) {
    for (std::size_t d = 0; d < dimensions; ++d)
      if (call.extents[d] > 1 && call.strides_bytes[stream * dimensions + d] == spec.copy_bytes) return true;
    return false;
  };
  return spec.copy_bytes > 0 &&
         (details_->run_bytes >= jit::least_run_past_caches || (lies_along_one(0) && lies_along_one(1)));
}

void ReadyCall::set_stores(std::int64_t bytes) {
  // Read once: there may be thousands of calls.
  static const transport::PastCaches limit = transport::past_caches_from_environment();
  const bool is_long = limit.least_bytes > 0 && std::cmp_greater_equal(bytes, limit.least_bytes);
  details_->may_go_past_caches = is_long && limit.is_tried;
  frame_->arguments.goes_past_caches = is_long && !limit.is_tried;
}

std::int64_t ReadyCall::copied_bytes(const jit::KernelSpec& spec) const {
  const KernelCall& call = details_->call;
  std::int64_t out = spec.copy_bytes * (spec.has_lists() ? call.list_length : 1);
  for (const std::int64_t extent : call.extents) out *= extent;
  return out;
}

/// Leaves none where it cannot be run in parts.
void ReadyCall::find_units(const jit::KernelSpec& spec) {
  Details& to = *details_;
  const KernelCall& call = to.call;
  const auto message = std::ranges::find(call.streams, StreamKind::message, &StreamUse::kind);
  if (message == call.streams.end()) return;
  const auto m = static_cast<std::size_t>(message - call.streams.begin());
  const std::size_t dimensions = spec.extents.size();
  if (spec.streams[m].is_indexed || dimensions + 1 > most_levels) return;
  // The message must be walked from its first byte to its last.
  std::int64_t inside = 0;
  const std::int64_t at_once = bytes_at_once(spec, m);
  for (std::size_t d = dimensions; d-- > 0;) {
    const std::int64_t stride = call.strides_bytes[m * dimensions + d];
    if (inside == 0) inside = stride;
    if ((stride != inside || stride < at_once) && call.extents[d] > 1) return;
    inside *= call.extents[d];
  }
  // A transposition goes across the lines of its buffer: parts of few rows would load each line again and again. What
  // fills a line must be short beside a part.
  constexpr std::int64_t line_bytes = 64, most_bytes_for_a_line = 8192;
  for (std::size_t k = 0; k < call.streams.size() && dimensions > 1; ++k)
    for (std::size_t d = 0; d + 1 < dimensions; ++d) {
      const std::int64_t step = std::abs(call.strides_bytes[k * dimensions + d]);
      if (call.streams[k].kind != StreamKind::buffer || call.extents[d] == 1 || step == 0 ||
          step >= std::abs(call.strides_bytes[k * dimensions + dimensions - 1]))
        continue;
      const std::int64_t rows = std::clamp<std::int64_t>(line_bytes / step, 1, call.extents[d]);
      if (rows * std::abs(call.strides_bytes[m * dimensions + d]) > most_bytes_for_a_line) return;
    }
  const std::int64_t list_stride = spec.streams[m].list_stride_bytes;
  const bool has_list = spec.has_lists();
  if (inside == 0 && has_list) inside = list_stride;
  if (inside < std::max<std::int64_t>(at_once, 1) || (has_list && call.list_length > 1 && list_stride != inside))
    return;

  Units out{message->offset_bytes, inside, 1};
  std::size_t free_dimensions = 0;
  while (free_dimensions < dimensions && spec.extents[free_dimensions] == jit::at_run_time) ++free_dimensions;
  for (std::size_t d = 0; d < free_dimensions; ++d) out.unit_bytes /= std::max<std::int64_t>(call.extents[d], 1);
  for (std::size_t d = free_dimensions; d-- > 0;) {
    to.levels.insert(to.levels.begin(), {static_cast<int>(d), call.extents[d], out.count});
    out.count *= call.extents[d];
  }
  if (has_list) {
    to.levels.insert(to.levels.begin(), {-1, call.list_length, out.count});
    out.count *= call.list_length;
  }
  for (const jit::Stream& s : spec.streams) to.list_strides.push_back(s.list_stride_bytes);
  for (const jit::Instruction& i : spec.instructions)
    if (i.opcode == jit::Opcode::position)
      to.positions.push_back({static_cast<std::size_t>(i.slot), i.position_strides});
  to.part_bases.resize(call.streams.size());
  to.part_lists.resize(call.streams.size());
  to.part_extents.resize(dimensions);
  to.part_scalars.resize(call.scalars.size());
  to.units = out;
}

[[gnu::always_inline]] inline std::byte* ReadyCall::address(const Base& b, const std::vector<BoundMemory>& memory,
                                                            std::byte* message) {
  return (b.buffer < 0 ? message : memory[static_cast<std::size_t>(b.buffer)].base) + b.offset_bytes;
}

[[gnu::hot]] inline void ReadyCall::set_bases(const std::vector<BoundMemory>& memory, std::byte* message) {
  std::byte** const bases = frame_->bases();
  for (const Base& b : frame_->moving_streams()) bases[b.stream] = address(b, memory, message);
}

[[gnu::hot]] std::uint64_t ReadyCall::operator()(const std::vector<BoundMemory>& memory, std::byte* message) {
  Frame& frame = *frame_;
  if (frame.form == Form::kernel) [[likely]] {
    set_bases(memory, message);
    return frame.kernel(frame.arguments);
  }
  if (frame.form == Form::copy) {
    const std::span<const Base> ends = frame.moving_streams();  // both move
    copy(address(ends[0], memory, message), address(ends[1], memory, message), frame.arguments.extents[0],
         frame.arguments.goes_past_caches != 0);
    return 0;
  }
  Details& d = *details_;
  (*d.native)(memory[static_cast<std::size_t>(d.call.native_buffer)].base, message + d.native_offset_bytes);
  return 0;
}

std::uint64_t ReadyCall::unpack_listed(const std::vector<BoundMemory>& memory, const std::byte* message,
                                       std::span<const jit::ListEntry> places) {
  set_bases(memory, const_cast<std::byte*>(message));
  frame_->lists()[0] = places.data();
  jit::KernelArguments arguments = frame_->arguments;
  arguments.list_length = std::ssize(places);
  arguments.goes_past_caches = 0;
  return frame_->kernel(arguments);
}

std::uint64_t ReadyCall::run_units(const std::vector<BoundMemory>& memory, std::byte* bytes, std::int64_t first,
                                   std::int64_t end) {
  const Details& d = *details_;
  const std::int64_t skipped = first * d.units->unit_bytes;
  std::byte** const bases = frame_->bases();
  // Bases are those of unit 0; that of the message may lie before the memory there is, and so is only reckoned with.
  set_bases(memory, moved(bytes, -d.units->first_byte));
  if (frame_->form == Form::copy) {
    for (std::size_t k = 0; k < 2; ++k)
      if (d.call.streams[k].kind != StreamKind::message) bases[k] += skipped;
    copy(bases[0], bases[1], end - first, parts_go_past_caches());
    return 0;
  }
  for (std::size_t k = 0; k < d.call.streams.size(); ++k)
    if (d.call.streams[k].kind == StreamKind::message) bases[k] = moved(bases[k], -skipped);
  return d.levels.empty() ? run_box(0, 0, 1) : cut(0, first, end);
}

bool ReadyCall::copy_units(const std::vector<BoundMemory>& memory, std::byte* bytes, std::int64_t first,
                           std::int64_t end, transport::Stores stores) const {
  if (frame_->form != Form::copy) return false;
  const Base& from = frame_->moving_streams()[1];
  if (from.buffer < 0) return false;
  transport::copy_to_slot(bytes, address(from, memory, nullptr) + first, static_cast<std::size_t>(end - first), stores);
  return true;
}

std::uint64_t ReadyCall::run_units_ahead(const std::vector<BoundMemory>& memory, std::byte* bytes, std::int64_t first,
                                         std::int64_t end) {
  constexpr std::int64_t long_run_bytes = 32;  // each of which has the processor ask for its lines soon enough
  if (details_->run_bytes >= long_run_bytes) return run_units(memory, bytes, first, end);
  const std::int64_t unit_bytes = details_->units->unit_bytes;
  const std::int64_t most = std::max<std::int64_t>(1, static_cast<std::int64_t>(asked_ahead_bytes) / unit_bytes);
  std::uint64_t fault = 0;
  while (first < end) {
    const std::int64_t last = std::min(first + most, end);
    std::byte* const next = bytes + (last - first) * unit_bytes;
    ask_for_beginning(next, static_cast<std::size_t>((end - last) * unit_bytes));
    fault = std::max(fault, run_units(memory, bytes, first, last));
    bytes = next;
    first = last;
  }
  return fault;
}

std::uint64_t ReadyCall::unpack_ahead(const std::vector<BoundMemory>& memory, const std::byte* message) {
  const std::optional<Units>& u = units();
  if (!u || std::cmp_less_equal(u->unit_bytes * u->count, asked_ahead_bytes)) return unpack(memory, message);
  return run_units_ahead(memory, const_cast<std::byte*>(message) + u->first_byte, 0, u->count);
}

std::uint64_t ReadyCall::cut(std::size_t level, std::int64_t first, std::int64_t end) {
  Details& d = *details_;
  const std::int64_t units = d.levels[level].units;
  std::int64_t i = first / units;
  const std::int64_t begun = first % units, last = end / units, left = end % units;
  std::uint64_t fault = 0;
  if (begun != 0 || i == last) {
    d.at[level] = i;
    fault = cut(level + 1, begun, i == last ? left : units);
    if (i == last) return fault;
    ++i;
  }
  if (i < last) fault = std::max(fault, run_box(level, i, last));
  if (left > 0) {
    d.at[level] = last;
    fault = std::max(fault, cut(level + 1, 0, left));
  }
  return fault;
}

/// Iterations [first, end) of a level, in the iterations of the levels around it that are fixed.
std::uint64_t ReadyCall::run_box(std::size_t level, std::int64_t first, std::int64_t end) {
  Details& d = *details_;
  const KernelCall& call = d.call;
  const jit::KernelArguments& whole = frame_->arguments;
  std::copy_n(whole.bases, d.part_bases.size(), d.part_bases.begin());
  std::copy_n(whole.lists, d.part_lists.size(), d.part_lists.begin());
  std::copy_n(whole.scalars, d.part_scalars.size(), d.part_scalars.begin());
  d.part_extents = call.extents;
  std::int64_t list_length = call.list_length;
  const std::size_t dimensions = d.part_extents.size();
  for (std::size_t l = 0; l < d.levels.size() && l <= level; ++l) {
    const std::int64_t from = l == level ? first : d.at[l], count = l == level ? end - first : 1;
    if (d.levels[l].dimension < 0) {
      list_length = count;
      for (std::size_t k = 0; k < d.part_bases.size(); ++k) {
        if (d.part_lists[k]) d.part_lists[k] += from;
        d.part_bases[k] = moved(d.part_bases[k], from * d.list_strides[k]);
      }
      continue;
    }
    const auto dimension = static_cast<std::size_t>(d.levels[l].dimension);
    d.part_extents[dimension] = count;
    for (std::size_t k = 0; k < d.part_bases.size(); ++k)
      d.part_bases[k] = moved(d.part_bases[k], from * call.strides_bytes[k * dimensions + dimension]);
    for (const Position& p : d.positions)
      d.part_scalars[2 * p.slot] += static_cast<std::uint64_t>(from * p.strides[dimension]);
  }
  const jit::KernelArguments arguments{d.part_bases.data(),    d.part_lists.data(), list_length,
                                       d.part_extents.data(),  whole.strides_bytes, d.part_scalars.data(),
                                       parts_go_past_caches(), whole.lists_go_far};
  return frame_->kernel(arguments);
}

void ReadyCall::move_in_message(std::int64_t bytes) {
  Details& d = *details_;
  d.native_offset_bytes += bytes;
  for (Base& b : frame_->moving_streams())
    if (b.buffer < 0) b.offset_bytes += bytes;
  for (StreamUse& s : d.call.streams)
    if (s.kind == StreamKind::message) s.offset_bytes += bytes;
  if (d.units) d.units->first_byte += bytes;
}

[[gnu::hot]] void ReadyCall::set_varying(const std::vector<ScalarValue>& parameters) {
  if (!frame_->has_varying) return;
  std::uint64_t* const scalars = frame_->scalars();
  for (const auto& [slot, parameter] : details_->call.varying_scalars) {
    const ScalarValue& v = parameters[static_cast<std::size_t>(parameter)];
    scalars[static_cast<std::size_t>(2 * slot)] = v.bits[0];
    scalars[static_cast<std::size_t>(2 * slot + 1)] = v.bits[1];
  }
}

}  // namespace kplan
