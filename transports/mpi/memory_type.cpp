// How it works: the innermost loop is a vector of blocks of bytes, each loop around it a vector of that, the offsets a
// list of it; several of these are members of a structure.
#include "transports/mpi/memory_type.hpp"

#include <climits>
#include <string>
#include <vector>

#include "transports/codes.hpp"

namespace kplan::transport::mpi_backend {
namespace {

int as_int(std::int64_t number) {
  if (number > INT_MAX)
    throw TransportError(codes::too_large, std::to_string(number) + " blocks, or bytes of a block, in a message; " +
                                               "MPI counts to " + std::to_string(INT_MAX));
  return static_cast<int>(number);
}

MemoryType type_of(const Blocks& b) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MemoryType inner;
  MPI_Datatype repeated = MPI_BYTE;
  int count = as_int(b.block_bytes);  // of what the next loop repeats
  for (std::size_t d = b.counts.size(); d-- > 0; count = 1) {
    check(
        MPI_Type_create_hvector(as_int(b.counts[d]), count, static_cast<MPI_Aint>(b.strides_bytes[d]), repeated, &made),
        "MPI_Type_create_hvector");
    inner = MemoryType(made);
    repeated = made;
  }
  MPI_Aint base = 0;
  check(MPI_Get_address(b.base, &base), "MPI_Get_address");
  std::vector<MPI_Aint> addresses;
  addresses.reserve(b.offsets_bytes.size());
  for (const std::int64_t offset : b.offsets_bytes)
    addresses.push_back(MPI_Aint_add(base, static_cast<MPI_Aint>(offset)));
  check(MPI_Type_create_hindexed_block(as_int(static_cast<std::int64_t>(addresses.size())), count, addresses.data(),
                                       repeated, &made),
        "MPI_Type_create_hindexed_block");
  return MemoryType(made);
}

MemoryType committed(MemoryType type) {
  MPI_Datatype handle = type.get();
  check(MPI_Type_commit(&handle), "MPI_Type_commit");
  return type;
}

}  // namespace

MemoryType memory_type(std::span<const Blocks> blocks) {
  std::vector<MemoryType> parts;
  std::vector<MPI_Datatype> types;
  for (const Blocks& b : blocks) types.push_back(parts.emplace_back(type_of(b)).get());
  if (parts.size() == 1) return committed(std::move(parts[0]));
  const std::vector<int> ones(types.size(), 1);
  const std::vector<MPI_Aint> zeros(types.size(), 0);
  MPI_Datatype made = MPI_DATATYPE_NULL;
  check(MPI_Type_create_struct(as_int(static_cast<std::int64_t>(types.size())), ones.data(), zeros.data(), types.data(),
                               &made),
        "MPI_Type_create_struct");
  return committed(MemoryType(made));
}

}  // namespace kplan::transport::mpi_backend
