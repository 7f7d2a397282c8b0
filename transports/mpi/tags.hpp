#pragma once
// Which tags of a communicator mean what.

namespace kplan::transport::mpi_backend {

inline constexpr int tag_of_nothing = 0;     ///< no message has it: probing for it only drives MPI
inline constexpr int tag_of_warming = 1;     ///< empty messages that set up connections
inline constexpr int first_channel_tag = 2;  ///< up to the largest tag, one a channel and five an exchange

/// The tags of a sparse exchange object, counted from its first one.
namespace exchange_tags {
inline constexpr int first_kind = 0;  ///< one for each LetterKind
inline constexpr int barrier = 3;
inline constexpr int body = 4;
inline constexpr int count = 5;
}  // namespace exchange_tags

}  // namespace kplan::transport::mpi_backend
