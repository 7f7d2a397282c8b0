#pragma once
// The stages of compilation that show prints, those with a file of their own.

#include <string>

#include "tools/kplan/contents.hpp"

namespace kplan::cli {

inline constexpr std::int64_t default_ranks = 4;

/// The kernels of one rank, as loops: each with the messages that use it; block copies by themselves.
std::string kernels_text(const Contents& contents, std::int64_t rank, std::int64_t size);

/// The code of one rank's kernels: LLVM IR or assembly. Throws Unsupported where there is no code generator.
std::string code_text(const Contents& contents, std::int64_t rank, std::int64_t size, bool is_assembly);

/// All messages of all ranks, as a Graphviz graph.
std::string graph_text(const Contents& contents, std::int64_t size);

}  // namespace kplan::cli
