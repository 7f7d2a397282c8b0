#pragma once
// The codes of the errors of this folder.

namespace kplan::transport::codes {

inline constexpr const char* not_come = "KP-T001";        ///< a rank has not come to a collective call in time
inline constexpr const char* lost = "KP-T002";            ///< a rank has ended while others wait for it
inline constexpr const char* mismatch = "KP-T003";        ///< the ends of a channel do not fit together
inline constexpr const char* late = "KP-T004";            ///< another rank has not done its part in time
inline constexpr const char* mpi_failed = "KP-T005";      ///< an MPI call returned an error
inline constexpr const char* cannot_open = "KP-T006";     ///< a rank could not make its ends, for want of memory say
inline constexpr const char* too_large = "KP-T007";       ///< more bytes than a collective call can carry
inline constexpr const char* unusable = "KP-T008";        ///< the transport failed before, or MPI is finalised
inline constexpr const char* ofi_failed = "KP-T009";      ///< a libfabric call, or what it began, failed
inline constexpr const char* control_failed = "KP-T010";  ///< the ranks cannot be brought together

inline constexpr const char* bad_timeout = "KP-E001";  ///< KPLAN_TIMEOUT is not a time
inline constexpr const char* bad_ranks = "KP-E002";    ///< a world of no ranks
inline constexpr const char* bad_comm = "KP-E003";  ///< a communicator that cannot be used, or MPI is not initialised
inline constexpr const char* bad_node = "KP-E004";  ///< KPLAN_NODE is neither on nor off

inline constexpr const char* bad_start = "KP-E005";     ///< the variables of a rendezvous do not fit
inline constexpr const char* bad_provider = "KP-E006";  ///< KPLAN_OFI_PROVIDER and the like, or what it comes to

inline constexpr const char* bad_number =
    "KP-E007";  ///< KPLAN_PIECE_BYTES or another variable of bytes or nanoseconds is no such number

inline constexpr const char* bad_collectives = "KP-E008";  ///< KPLAN_COLLECTIVES is none of its values

inline constexpr const char* no_mpi = "KP-U070";   ///< this build has no MPI backend
inline constexpr const char* no_ofi = "KP-U071";   ///< this build, or this machine, has no libfabric
inline constexpr const char* no_pmix = "KP-U072";  ///< a launcher that does not speak PMIx

}  // namespace kplan::transport::codes
