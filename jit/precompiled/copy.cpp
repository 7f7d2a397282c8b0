// How it works: what is contiguous on both sides becomes one run; the rows that are left are copied by a loop compiled
// for the run's size, and for the way its elements lie: packed in the target, packed in the source, or neither, with
// or without lists. Sizes without a loop of their own go to memcpy, run by run.
#include "jit/precompiled/copy.hpp"

#include <cstring>

#include "jit/precompiled/numeric_nest.hpp"

namespace kplan::jit {
namespace {

/// One row: `count` elements, each with its strides and, where the row runs over lists, its entries.
struct Row {
  std::byte* to;
  const std::byte* from;
  std::int64_t count, to_stride, from_stride;
  TrackList to_list, from_list;
  std::size_t bytes;
};

using RowCopy = void (*)(Row);

/// `Bytes` of 0: `row.bytes` of them. The row is a copy of its own: what is stored may not alias it.
template <std::size_t Bytes, bool ToIsPacked, bool FromIsPacked>
void copy_strided(const Row row) {
  const std::int64_t to_stride = ToIsPacked ? static_cast<std::int64_t>(Bytes) : row.to_stride;
  const std::int64_t from_stride = FromIsPacked ? static_cast<std::int64_t>(Bytes) : row.from_stride;
  for (std::int64_t i = 0; i < row.count; ++i)
    std::memcpy(row.to + i * to_stride, row.from + i * from_stride, Bytes == 0 ? row.bytes : Bytes);
}

template <std::size_t Bytes, bool ToIsIndexed, bool FromIsIndexed>
void copy_indexed(const Row row) {
  for (std::int64_t i = 0; i < row.count; ++i) {
    std::memcpy(row.to + i * row.to_stride + static_cast<std::int64_t>(ToIsIndexed ? row.to_list[i] : 0),
                row.from + i * row.from_stride + static_cast<std::int64_t>(FromIsIndexed ? row.from_list[i] : 0),
                Bytes == 0 ? row.bytes : Bytes);
  }
}

template <std::size_t Bytes>
RowCopy choose_layout(const Row& row) {
  if (row.to_list) return row.from_list ? copy_indexed<Bytes, true, true> : copy_indexed<Bytes, true, false>;
  if (row.from_list) return copy_indexed<Bytes, false, true>;
  if (Bytes != 0 && row.to_stride == static_cast<std::int64_t>(Bytes)) return copy_strided<Bytes, true, false>;
  if (Bytes != 0 && row.from_stride == static_cast<std::int64_t>(Bytes)) return copy_strided<Bytes, false, true>;
  return copy_strided<Bytes, false, false>;
}

RowCopy choose_copy(const Row& row) {
  switch (row.bytes) {
    case 1: return choose_layout<1>(row);
    case 2: return choose_layout<2>(row);
    case 4: return choose_layout<4>(row);
    case 8: return choose_layout<8>(row);
    case 12: return choose_layout<12>(row);
    case 16: return choose_layout<16>(row);
    case 24: return choose_layout<24>(row);
    case 32: return choose_layout<32>(row);
    default: return choose_layout<0>(row);
  }
}

}  // namespace

void run_copy(const KernelSpec& spec, const KernelArguments& arguments) {
  NumericNest nest(spec, arguments);
  if (nest.is_empty) return;
  nest.simplify();
  Row row{};
  row.bytes = static_cast<std::size_t>(nest.take_run(spec.copy_bytes));
  if (spec.is_injective) nest.choose_inner();
  row.count = nest.extents[nest.inner()];
  row.to_stride = static_cast<std::int64_t>(nest.strides[nest.inner()][0]);
  row.from_stride = static_cast<std::int64_t>(nest.strides[nest.inner()][1]);
  row.to_list = nest.inner_list(0);
  row.from_list = nest.inner_list(1);
  const RowCopy copy = choose_copy(row);
  for_each_row(nest, [&](const std::uint64_t* at) {
    row.to = reinterpret_cast<std::byte*>(at[0]);
    row.from = reinterpret_cast<const std::byte*>(at[1]);
    copy(row);
    return true;
  });
}

}  // namespace kplan::jit
