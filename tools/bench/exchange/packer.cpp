// How it works: the region's pieces become walks; element types, short rows and blocks select instances of the loops.
// Experts see runs in lists of indices.
#include "tools/bench/exchange/packer.hpp"

#include <stdexcept>

namespace kplan::bench {
namespace {

using namespace loops;
using Unpack = decltype(Loops::unpack);

template <std::size_t Bytes, class T>
Loops rows() {
  return {pack_rows<Bytes, T>, unpack_rows<Bytes, T>};
}

/// The lengths of short rows that the workloads have; all others are copied by memcpy of any length.
template <class T>
Loops rows_of(std::size_t bytes) {
  switch (bytes) {
    case 4: return rows<4, T>();
    case 8: return rows<8, T>();
    case 12: return rows<12, T>();
    case 16: return rows<16, T>();
    case 24: return rows<24, T>();
    case 32: return rows<32, T>();
    case 40: return rows<40, T>();
    case 48: return rows<48, T>();
    case 64: return rows<64, T>();
    case 92: return rows<92, T>();
    case 96: return rows<96, T>();
    default: return rows<0, T>();
  }
}

template <class T>
Loops copying(const Walk& w, Care care) {
  if (care == Care::plain) {
    if (w.indices != nullptr) return {pack_indexed<T, 0>, unpack_indexed<T, T, false, 0>};
    return {pack_elements<T>, unpack_elements<T, T, false, 0>};
  }
  if (w.indices != nullptr) {
    constexpr std::int64_t long_block_bytes = 64;
    return with_constant(w.block, [&]<int Block>(std::integral_constant<int, Block>) -> Loops {
      if (Block == 0 && w.block * static_cast<std::int64_t>(sizeof(T)) >= long_block_bytes)
        return {pack_blocks<T>, unpack_blocks<T>};
      return {pack_indexed<T, Block>, unpack_indexed<T, T, false, Block>};
    });
  }
  if (w.inner_stride == 1) return rows_of<T>(static_cast<std::size_t>(w.inner_count) * sizeof(T));
  const bool is_transposed = w.counts[2] > 1 && w.strides_bytes[2] == static_cast<std::int64_t>(sizeof(T));
  if (is_transposed && w.inner_count >= tile && w.counts[2] >= tile) return {pack_transposed<T>, unpack_transposed<T>};
  return {pack_elements<T>, unpack_elements<T, T, false, 0>};
}

template <class Wire, class Place, bool Adds>
Unpack updating(const Walk& w, Care care) {
  const bool is_list = w.indices != nullptr;
  const std::int64_t count = care == Care::plain ? 0 : is_list ? w.block : w.inner_count;
  return with_constant(count, [&]<int Count>(std::integral_constant<int, Count>) -> Unpack {
    return is_list ? unpack_indexed<Wire, Place, Adds, Count> : unpack_elements<Wire, Place, Adds, Count>;
  });
}

Loops copying(const Walk& w, std::size_t element_bytes, Care care) {
  switch (element_bytes) {
    case 1: return copying<std::uint8_t>(w, care);
    case 4: return copying<float>(w, care);
    case 8: return copying<double>(w, care);
    case 16: return copying<Complex>(w, care);
    default: throw std::runtime_error("no loops for elements of this size");
  }
}

Unpack updating(const Walk& w, Scalar wire, Scalar place, Combine combine, Care care) {
  const bool adds = combine == Combine::sum;
  if (wire == Scalar::f32 && place == Scalar::f64)
    return adds ? updating<float, double, true>(w, care) : updating<float, double, false>(w, care);
  if (wire == Scalar::f64 && place == Scalar::f64) return updating<double, double, true>(w, care);
  if (wire == Scalar::f32 && place == Scalar::f32) return updating<float, float, true>(w, care);
  throw std::runtime_error("no loops that combine these types");
}

}  // namespace

Walk walk_of(const Nest& nest, const Array& array) {
  const auto bytes = static_cast<std::int64_t>(size_of(array.type));
  Walk out;
  out.base = array.data + nest.first * bytes;
  if (nest.loops.empty()) return out;
  if (nest.loops.size() > 4) throw std::runtime_error("more than four loops");
  const std::size_t outer = nest.loops.size() - 1;
  for (std::size_t d = 0; d < outer; ++d) {
    out.counts[3 - outer + d] = nest.loops[d].count;
    out.strides_bytes[3 - outer + d] = nest.loops[d].stride * bytes;
  }
  out.inner_count = nest.loops.back().count;
  out.inner_stride = nest.loops.back().stride;
  return out;
}

namespace {

Walk walk_of(const IndexList& list, const Array& array) {
  const auto bytes = static_cast<std::int64_t>(size_of(array.type));
  Walk out;
  out.base = array.data + list.offset * bytes;
  out.indices = list.indices.data();
  out.inner_count = static_cast<std::int64_t>(list.indices.size());
  out.unit_bytes = list.unit * bytes;
  out.block = list.block;
  return out;
}

}  // namespace

Packer::Packer(const Region& region, const std::vector<Array>& arrays, Scalar wire, Combine combine, Care care)
    : region_(care == Care::expert ? in_runs(region) : region) {
  for (const Piece& piece : region_) {
    const Array& array = arrays[static_cast<std::size_t>(std::visit([](const auto& p) { return p.array; }, piece))];
    Step step;
    const auto* nest = std::get_if<Nest>(&piece);
    step.walk = nest != nullptr ? walk_of(simplified(*nest), array) : walk_of(std::get<IndexList>(piece), array);
    const Loops copies = copying(step.walk, size_of(array.type), care);
    step.type = array.type;
    step.loops = copies;
    const bool is_copy = combine == Combine::assign && size_of(array.type) == size_of(wire);
    if (!is_copy) step.loops.unpack = updating(step.walk, wire, array.type, combine, care);
    step.offset_bytes = message_bytes_;
    message_bytes_ += static_cast<std::size_t>(element_count({piece})) * size_of(wire);
    steps_.push_back(step);
  }
}

}  // namespace kplan::bench
