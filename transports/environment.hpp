#pragma once
// The environment variables by which transports, and the engine where it sends, go; KPLAN_TIMEOUT is in
// kplan/transport.hpp.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kplan::transport {

/// An environment variable as it is; empty where it is not set.
std::string variable(const char* name);

/// Whether processes of one node exchange through shared memory: KPLAN_NODE, `on` (the default) or `off`. Errors:
/// PlanError for anything else in that variable.
bool node_path_from_environment();

/// The bytes of a piece where long messages go through shared memory in pieces, or are unpacked in parts elsewhere:
/// KPLAN_PIECE_BYTES, a number from 1 to 2^30, 32768 by default; 0: they go whole. Must be the same on all ranks.
/// Errors: PlanError.
std::size_t piece_bytes_from_environment();

/// From how many bytes on messages to far cores are written past the caches, or in whole lines:
/// KPLAN_NON_TEMPORAL_BYTES, a number from 1 to 2^30; 0: none. By default 512 where the processor has such stores, and
/// none on those of Intel, where that takes longer. Errors: PlanError.
std::size_t non_temporal_bytes_from_environment();

/// From how many bytes on what one call of a kernel copies, or the parts of one, is written past the caches where its
/// layout lets it: KPLAN_PAST_CACHES_BYTES, a number from 1 to 2^30; 0: nothing. By default from 2 MiB on, in runs that
/// are shorter then. Errors: PlanError.
struct PastCaches {
  std::size_t least_bytes;
  bool is_tried;                   ///< nobody has said it
  bool are_transpositions_likely;  ///< to be faster past them: on processors of Intel, from 2 MiB on
};
PastCaches past_caches_from_environment();

/// How long a line takes that comes from a far core: KPLAN_FAR_NS, a number of nanoseconds from 1 to 2^30, by
/// default 120, and 200 on processors of Intel; 0: all are far. Errors: PlanError.
std::chrono::nanoseconds far_from_environment();

/// Whether statements that are collective operations use those of the transport: KPLAN_COLLECTIVES, `auto` (the
/// default: where they are faster), `native` (wherever they can) or `off`. Errors: PlanError.
enum class NativeCollectives : std::uint8_t { off, where_faster, wherever_possible };
NativeCollectives native_collectives_from_environment();

/// From how many bytes a message on the ranks of an all-reduce combine a share each and then exchange them (on two
/// ranks that share no memory from 16 times as many on): KPLAN_TWO_STEP_BYTES, a number from 1 to 2^30, 32768 by
/// default; 0: never. Local. Errors: PlanError.
std::size_t two_step_bytes_from_environment();

/// From how many bytes on a message is lent where it can be: KPLAN_LEND_BYTES, a number from 1 to 2^30, 2048 by
/// default; 0: none is. Local. Errors: PlanError.
std::size_t lend_bytes_from_environment();

/// How many times a message's bytes the cache lines that they lie on may hold for it to be lent: KPLAN_LEND_SPREAD, a
/// number from 1 on, 4 by default; 0: any. Local. Errors: PlanError.
std::size_t lend_spread_from_environment();

/// From how many bytes on a message may be fetched from where it lies by a process of the node: KPLAN_FETCH_BYTES, a
/// number from 1 to 2^30, 65536 by default; 0: none is. Local. Errors: PlanError.
std::size_t fetch_bytes_from_environment();

/// How long the blocks must be that a fetched message lies in, and those that it goes to without being unpacked, on
/// average: KPLAN_FETCH_BLOCK_BYTES, a number from 1 to 2^30, 4096 by default; 0: any. Local. Errors: PlanError.
std::size_t fetch_block_bytes_from_environment();

/// From how many bytes on a message may be placed, where runs find that faster: KPLAN_PLACE_BYTES, a number from 1 to
/// 2^30, 16384 by default; 0: none is. Local. Errors: PlanError.
std::size_t place_bytes_from_environment();

/// How long the blocks must be that a placed message lies in, on average: KPLAN_PLACE_BLOCK_BYTES, a number from 1 to
/// 2^30, 8 by default; 0: any. Local. Errors: PlanError.
std::size_t place_block_bytes_from_environment();

/// Of messages that are longer, how many bytes may go ahead of the rest at a time.
struct GoingAhead {
  std::size_t bytes;   ///< 0: they go as a whole
  bool may_be_placed;  ///< those of placed ends, too
};
/// KPLAN_AHEAD_BYTES, a number from 1 to 2^30, of all messages; by default 131072, and those of placed ends go as a
/// whole on processors of Intel. Local. Errors: PlanError.
GoingAhead going_ahead_from_environment();

/// Whether channels over libfabric may write into their receivers' memory: KPLAN_OFI_ONE_SIDED, `on` (the default) or
/// `off`. Errors: PlanError for anything else in that variable.
bool one_sided_from_environment();

/// Reads all variables that transports, and the engine where it sends, go by, but for those that start a world, which
/// only that can judge. Returns the names of all. Errors: PlanError for the first that cannot be read.
std::vector<std::string_view> checked_variables();

}  // namespace kplan::transport
