// How it works: extents first, then the target's layout (packed in a random order of the dimensions where iterations
// must not meet, anything otherwise), then the sources', then instructions drawn at random and kept where check()
// accepts them. Offsets are enumerated to place the streams flush with the guard pages.
#include "random_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kplan/error.hpp"

namespace kplan::test {
namespace {

using jit::at_run_time;
using jit::Instruction;
using jit::Opcode;

class Maker {
 public:
  explicit Maker(std::mt19937_64& random) : random_(random) {}

  RandomKernel make() {
    extents();
    const bool is_copy = chance(35);
    k_.spec.is_injective = chance(80);
    k_.spec.streams.resize(is_copy ? 2 : static_cast<std::size_t>(pick(2, 3)));
    k_.lists.resize(k_.spec.streams.size());
    choose_lists();
    std::vector<std::int64_t> element(k_.spec.streams.size());
    if (is_copy) {
      static constexpr std::int64_t sizes[] = {1, 2, 4, 8, 8, 4, 16, 3, 12, 24, 40, 257, 300};
      k_.spec.copy_bytes = sizes[static_cast<std::size_t>(pick(0, std::size(sizes) - 1))];
      element.assign(2, k_.spec.copy_bytes);
    } else {
      instructions(element);
    }
    for (std::size_t s = 0; s < k_.spec.streams.size(); ++s) layout(s, element[s]);
    for (std::size_t s = 0; s < k_.spec.streams.size(); ++s) span(s, element[s]);
    hide_numbers();
    int slots = 0;
    for (const jit::Instruction& in : k_.spec.instructions) slots = std::max(slots, in.slot + 1);
    for (int i = 0; i < 2 * slots; ++i)
      k_.scalars.push_back(chance(50) ? random_() : static_cast<std::uint64_t>(pick(-3, 3)));
    k_.seed = static_cast<std::uint32_t>(random_());
    k_.spec.name = "random";
    return std::move(k_);
  }

 private:
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  Scalar any_type() { return static_cast<Scalar>(pick(0, 12)); }

  void extents() {
    static constexpr std::int64_t usual[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 26, 33, 64, 100};
    std::int64_t total = 1;
    for (auto rank = pick(0, 4); rank > 0; --rank) {
      std::int64_t extent = usual[static_cast<std::size_t>(pick(0, std::size(usual) - 1))];
      if (total * extent > 1500) extent = pick(1, 3);
      total *= extent;
      k_.extents.push_back(extent);
    }
  }

  void choose_lists() {
    if (!chance(35)) return;
    k_.list_length = pick(0, 20);
    for (auto& stream : k_.spec.streams) stream.is_indexed = chance(60);
    k_.spec.streams.back().is_indexed = true;
  }

  /// Strides, and a list where the stream has one.
  void layout(std::size_t s, std::int64_t element) {
    auto& stream = k_.spec.streams[s];
    const std::size_t rank = k_.extents.size();
    const bool is_packed = (s == 0 && k_.spec.is_injective) || chance(60);
    stream.strides_bytes.assign(rank, 0);
    std::vector<std::size_t> order(rank);
    std::iota(order.rbegin(), order.rend(), std::size_t(0));  // innermost first
    if (chance(40)) std::shuffle(order.begin(), order.end(), random_);
    std::int64_t block = element * (chance(70) ? 1 : pick(1, 5));
    for (std::size_t d : order) {
      if (is_packed) {
        stream.strides_bytes[d] = chance(85) ? block : -block;
        block *= k_.extents[d];
        if (chance(15)) block += element * pick(1, 3);
      } else {
        stream.strides_bytes[d] = element * pick(-5, 5) + (s != 0 && chance(10) ? pick(0, 3) : 0);
        block = std::max(block, std::abs(stream.strides_bytes[d]) * k_.extents[d] + element);
      }
    }
    if (!k_.spec.has_lists()) return;
    if (!stream.is_indexed) {
      stream.list_stride_bytes = is_packed ? block : element * pick(-2, 2);
      return;
    }
    auto& list = k_.lists[s];
    const std::int64_t unit = chance(50) ? block : 1;
    stream.list_scale_bytes = unit;
    for (std::int64_t o = 0; o < k_.list_length; ++o)
      list.push_back(static_cast<jit::ListEntry>((is_packed ? o : pick(0, 10)) * (block / unit)));
    std::shuffle(list.begin(), list.end(), random_);
  }

  void span(std::size_t s, std::int64_t element) {
    for (std::int64_t stride : k_.spec.streams[s].strides_bytes) k_.strides.push_back(stride);
    if (s + 1 < k_.spec.streams.size()) {
      pending_.push_back(element);
      return;
    }
    pending_.push_back(element);
    for (std::size_t i = 0; i < k_.spec.streams.size(); ++i) {
      std::int64_t first = INT64_MAX, last = INT64_MIN;
      for_each_offset(k_, i, [&](std::int64_t at) {
        first = std::min(first, at);
        last = std::max(last, at + pending_[i]);
      });
      k_.first.push_back(first > last ? 0 : first);
      k_.last.push_back(first > last ? 0 : last);
    }
  }

  /// Makes some literals run-time values, and now and then a run-time extent zero.
  void hide_numbers() {
    k_.spec.extents = k_.extents;
    for (std::size_t d = 0; d < k_.extents.size(); ++d) {
      if (!chance(30)) continue;
      k_.spec.extents[d] = at_run_time;
      if (chance(5)) k_.extents[d] = 0;
    }
    for (auto& stream : k_.spec.streams) {
      for (std::int64_t& stride : stream.strides_bytes) {
        if (chance(15)) stride = at_run_time;
      }
    }
  }

  void add_load(std::int32_t stream, Scalar type, std::int64_t offset) {
    Instruction in;
    in.opcode = Opcode::load;
    in.stream = stream;
    in.type = type;
    in.offset_bytes = offset;
    k_.spec.instructions.push_back(in);
  }

  void add_leaf() {
    Instruction in;
    in.type = any_type();
    const auto kind = pick(0, 2);
    if (kind == 0) {
      in.opcode = Opcode::constant;
      in.bits[0] = chance(50) ? random_() : static_cast<std::uint64_t>(pick(-2, 2));
      in.bits[1] = random_();
    } else if (kind == 1) {
      in.opcode = Opcode::scalar;
      in.slot = static_cast<std::int32_t>(pick(0, 2));
    } else {
      in.opcode = Opcode::position;
      in.type = Scalar::i64;
      in.slot = static_cast<std::int32_t>(pick(-1, 1));
      for (std::size_t d = 0; d < k_.extents.size(); ++d) in.position_strides.push_back(pick(-2, 3));
    }
    k_.spec.instructions.push_back(in);
  }

  void add_apply() {
    auto& all = k_.spec.instructions;
    const auto count = static_cast<std::int32_t>(all.size());
    auto one_of = [&](Scalar type) {
      std::vector<std::int32_t> fitting;
      for (std::int32_t i = 0; i < count; ++i) {
        if (all[static_cast<std::size_t>(i)].type == type) fitting.push_back(i);
      }
      return fitting.empty() ? -1 : fitting[static_cast<std::size_t>(pick(0, std::ssize(fitting) - 1))];
    };
    Instruction in;
    in.opcode = Opcode::apply;
    in.operation = chance(25) ? Operation::convert : static_cast<Operation>(pick(0, static_cast<int>(Operation::sqrt)));
    in.a = static_cast<std::int32_t>(pick(0, count - 1));
    const Scalar type = all[static_cast<std::size_t>(in.a)].type;
    in.type = in.operation == Operation::convert ? any_type() : is_comparison(in.operation) ? Scalar::boolean : type;
    if (in.operation == Operation::select) {
      in.a = one_of(Scalar::boolean);
      in.type = type;
    }
    if (operand_count(in.operation) > 1) in.b = one_of(type);
    if (operand_count(in.operation) > 2) in.c = one_of(type);
    if (divides(in.operation) && is_integer(in.type)) in.guard = one_of(Scalar::boolean);
    all.push_back(in);
    auto probe = k_.spec;
    probe.extents.assign(k_.extents.size(), 1);
    for (auto& stream : probe.streams) stream.strides_bytes.assign(k_.extents.size(), 0);
    probe.outputs = {{0, count}};
    try {
      jit::check(probe);
    } catch (const InternalError&) {
      all.pop_back();
    }
  }

  void instructions(std::vector<std::int64_t>& element) {
    const bool is_record = chance(30);
    for (std::size_t s = 1; s < element.size(); ++s) {
      for (auto fields = is_record ? pick(1, 3) : 1; fields > 0; --fields) {
        const Scalar type = any_type();
        add_load(static_cast<std::int32_t>(s), type, element[s]);
        element[s] += static_cast<std::int64_t>(size_of(type)) + (is_record ? pick(0, 2) : 0);
      }
    }
    for (auto leaves = pick(0, 2); leaves > 0; --leaves) add_leaf();
    // What the target holds before is of the type that the first output will have: it is converted below.
    const Scalar kept = any_type();
    const bool reads_target = chance(25);
    if (reads_target) add_load(0, kept, 0);
    for (auto tries = pick(0, 12); tries > 0; --tries) add_apply();
    if (reads_target) {
      Instruction in;
      in.opcode = Opcode::apply;
      in.operation = Operation::convert;
      in.type = kept;
      in.a = static_cast<std::int32_t>(k_.spec.instructions.size()) - 1;
      k_.spec.instructions.push_back(in);
    }
    std::int64_t at = 0;
    for (auto outputs = is_record ? pick(1, 3) : 1; outputs > 0; --outputs) {
      const auto last = std::ssize(k_.spec.instructions) - 1;
      const auto from = at == 0 ? last : pick(0, last);
      k_.spec.outputs.push_back({at, static_cast<std::int32_t>(from)});
      at += static_cast<std::int64_t>(size_of(k_.spec.instructions[static_cast<std::size_t>(from)].type)) +
            (is_record ? pick(0, 2) : 0);
    }
    element[0] = at;
  }

  std::mt19937_64& random_;
  RandomKernel k_;
  std::vector<std::int64_t> pending_;
};

}  // namespace

RandomKernel random_kernel(std::mt19937_64& random) {
  for (;;) {
    RandomKernel kernel = Maker(random).make();
    bool fits = true;
    for (std::size_t s = 0; s < kernel.first.size(); ++s) {
      fits = fits && kernel.last[s] - kernel.first[s] < static_cast<std::int64_t>(Arena::bytes);
    }
    if (fits) return kernel;
  }
}

Arena::Arena() {
  for (int i = 0; i < 3; ++i) memories_.push_back(std::make_unique<GuardedMemory>(bytes));
}

jit::KernelArguments Arena::prepare(const RandomKernel& kernel) {
  bases_.clear();
  lists_.clear();
  std::mt19937 random(kernel.seed);
  for (std::size_t s = 0; s < kernel.spec.streams.size(); ++s) {
    const auto size = static_cast<std::size_t>(kernel.last[s] - kernel.first[s]);
    std::byte* begin = random() % 2 != 0 ? memories_[s]->at_end(size) : memories_[s]->at_begin();
    // Small bytes now and then, so that zero divisors, equal values and falses happen.
    const bool is_small = random() % 3 == 0;
    for (std::size_t i = 0; i < size; ++i) begin[i] = static_cast<std::byte>(is_small ? random() % 3 : random());
    bases_.push_back(begin - kernel.first[s]);
    lists_.push_back(kernel.spec.streams[s].is_indexed ? kernel.lists[s].data() : nullptr);
  }
  return {bases_.data(),
          lists_.data(),
          kernel.list_length,
          kernel.extents.data(),
          kernel.strides.data(),
          kernel.scalars.data(),
          static_cast<std::uint32_t>(random() % 2),
          static_cast<std::uint32_t>(random() % 2)};
}

std::vector<std::byte> Arena::target(const RandomKernel& kernel) {
  return {bases_[0] + kernel.first[0], bases_[0] + kernel.last[0]};
}

}  // namespace kplan::test
