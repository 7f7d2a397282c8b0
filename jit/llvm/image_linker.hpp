#pragma once
// From an object file to a code image.

#include <llvm/ADT/StringRef.h>
#include <llvm/Support/Error.h>

#include <cstddef>
#include <vector>

namespace kplan::jit {

/// Links an object that holds one kernel, the named function, with its data and the library functions that it calls.
/// Fails where the code cannot lie anywhere, or calls something else.
llvm::Expected<std::vector<std::byte>> link_image(llvm::StringRef object, llvm::StringRef function);

}  // namespace kplan::jit
