// How it works: one type a piece with its offset in it; several are joined by a structure.
#include "tools/bench/exchange/region_type.hpp"

#include <set>
#include <stdexcept>

namespace kplan::bench {
namespace {

OwnedType owned(MPI_Datatype type) { return {type, MPI_Type_free}; }

std::vector<int> as_ints(const std::vector<std::int64_t>& values) { return {values.begin(), values.end()}; }

/// A box as a subarray: its offset is in it.
OwnedType box_type(const Nest& nest, const Array& array) {
  MPI_Datatype out = MPI_DATATYPE_NULL;
  MPI_Type_create_subarray(static_cast<int>(array.shape.size()), as_ints(array.shape).data(),
                           as_ints(nest.extents).data(), as_ints(nest.starts).data(), MPI_ORDER_C,
                           basic_type(array.type), &out);
  return owned(out);
}

/// Vectors within vectors, from the inside, at the nest's first element.
OwnedType loops_type(const Nest& given, const Array& array) {
  const Nest nest = simplified(given);
  const auto bytes = static_cast<MPI_Aint>(size_of(array.type));
  OwnedType inner;
  MPI_Datatype current = basic_type(array.type);
  for (std::size_t d = nest.loops.size(); d-- > 0;) {
    const Loop& loop = nest.loops[d];
    MPI_Datatype outer = MPI_DATATYPE_NULL;
    if (loop.stride == 1 && d + 1 == nest.loops.size())
      MPI_Type_contiguous(static_cast<int>(loop.count), current, &outer);
    else MPI_Type_create_hvector(static_cast<int>(loop.count), 1, loop.stride * bytes, current, &outer);
    inner = owned(outer);
    current = outer;
  }
  MPI_Datatype out = MPI_DATATYPE_NULL;
  const MPI_Aint first = nest.first * bytes;
  MPI_Type_create_hindexed_block(1, 1, &first, current, &out);
  return owned(out);
}

OwnedType list_type(const IndexList& list, const Array& array) {
  std::vector<int> displacements;
  displacements.reserve(list.indices.size());
  for (const std::int32_t index : list.indices) displacements.push_back(index * list.unit + list.offset);
  MPI_Datatype out = MPI_DATATYPE_NULL;
  MPI_Type_create_indexed_block(static_cast<int>(displacements.size()), list.block, displacements.data(),
                                basic_type(array.type), &out);
  return owned(out);
}

OwnedType piece_type(const Piece& piece, const std::vector<Array>& arrays) {
  if (const auto* list = std::get_if<IndexList>(&piece))
    return list_type(*list, arrays[static_cast<std::size_t>(list->array)]);
  const auto& nest = std::get<Nest>(piece);
  const Array& array = arrays[static_cast<std::size_t>(nest.array)];
  return nest.extents.empty() ? loops_type(nest, array) : box_type(nest, array);
}

int array_of(const Piece& piece) {
  return std::visit([](const auto& p) { return p.array; }, piece);
}

}  // namespace

MPI_Datatype basic_type(Scalar type) {
  switch (type) {
    case Scalar::f32: return MPI_FLOAT;
    case Scalar::f64: return MPI_DOUBLE;
    case Scalar::c128: return MPI_C_DOUBLE_COMPLEX;
    case Scalar::i64: return MPI_INT64_T;
    default: return MPI_BYTE;
  }
}

void* type_base(const Exchange& exchange, const std::vector<Link>& links) {
  std::set<int> arrays;
  for (const Link& l : links)
    for (const Piece& piece : l.mine) arrays.insert(array_of(piece));
  return arrays.size() == 1 ? exchange.arrays[static_cast<std::size_t>(*arrays.begin())].data : MPI_BOTTOM;
}

OwnedType region_type(const Region& region, const Exchange& exchange, const void* base) {
  std::vector<OwnedType> parts;
  std::vector<MPI_Datatype> types;
  std::vector<MPI_Aint> offsets;
  for (const Piece& piece : in_runs(region)) {
    parts.push_back(piece_type(piece, exchange.arrays));
    types.push_back(parts.back().get());
    MPI_Aint address = 0;
    if (base == MPI_BOTTOM) MPI_Get_address(exchange.arrays[static_cast<std::size_t>(array_of(piece))].data, &address);
    offsets.push_back(address);
  }
  OwnedType out = parts.at(0);
  if (parts.size() > 1 || base == MPI_BOTTOM) {
    MPI_Datatype all = MPI_DATATYPE_NULL;
    const std::vector<int> ones(types.size(), 1);
    MPI_Type_create_struct(static_cast<int>(types.size()), ones.data(), offsets.data(), types.data(), &all);
    out = owned(all);
  }
  MPI_Datatype type = out.get();
  MPI_Type_commit(&type);
  return out;
}

}  // namespace kplan::bench
