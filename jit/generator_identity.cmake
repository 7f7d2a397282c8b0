# Writes OUTPUT, a header with the code generator's identity: LLVM's version and a hash of the SOURCES that decide what
# code a spec gets. Kernels on disk are found again only by a generator of the same identity. Without LLVM it is empty.
set(hashes "")
foreach(source ${SOURCES})
  file(SHA256 ${source} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 16 hash)
set(identity "")
if(LLVM)
  set(identity "llvm ${LLVM}, sources ${hash}")
endif()
file(WRITE ${OUTPUT} "#pragma once
// Made by generator_identity.cmake.

namespace kplan::jit {

inline constexpr const char* generator_identity = \"${identity}\";

}  // namespace kplan::jit
")
