#pragma once
// Executable memory: objects in, addresses out, batch by batch.

#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Support/MemoryBuffer.h>

#include <memory>
#include <string>
#include <vector>

namespace kplan::jit {

/// One batch's place in the store.
struct StoredCode {
  llvm::orc::JITDylib* dylib = nullptr;
  llvm::orc::ResourceTrackerSP tracker;
};

class CodeStore {
 public:
  static llvm::Expected<std::unique_ptr<CodeStore>> create();
  ~CodeStore();

  /// Links the object and writes the addresses of the named functions.
  llvm::Expected<StoredCode> add(llvm::StringRef object, const std::vector<std::string>& names,
                                 std::vector<void*>& addresses);
  /// Frees the code. Its functions must not be running.
  llvm::Error remove(StoredCode code);

 private:
  CodeStore() = default;

  std::unique_ptr<llvm::orc::ExecutionSession> session_;
  std::unique_ptr<llvm::orc::ObjectLinkingLayer> linker_;
  llvm::orc::JITDylib* process_ = nullptr;  ///< the few library functions that kernels call
  std::uint64_t batch_count_ = 0;
};

}  // namespace kplan::jit
