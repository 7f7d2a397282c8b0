#pragma once
// The machine we generate code for: this one. Owns the target machine and turns modules into objects or text.

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/Error.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>

namespace kplan::jit {

class HostTarget {
 public:
  /// Detects the processor and sets the code generator up. Cost: a millisecond.
  static llvm::Expected<std::unique_ptr<HostTarget>> create();

  /// Gives the module this target's triple and data layout.
  void prepare(llvm::Module& module) const;
  /// Machine code: an object file in memory.
  llvm::Error generate_object(llvm::Module& module, llvm::SmallVectorImpl<char>& object);
  /// Assembly with comments.
  llvm::Error generate_assembly(llvm::Module& module, llvm::SmallVectorImpl<char>& text);

  /// The widest vector that is worth using, in bytes: 16, 32 or 64.
  int vector_bytes() const { return vector_bytes_; }

 private:
  HostTarget() = default;
  llvm::Error generate(llvm::Module& module, llvm::SmallVectorImpl<char>& out, llvm::CodeGenFileType type);

  std::unique_ptr<llvm::TargetMachine> machine_;
  int vector_bytes_ = 16;
};

}  // namespace kplan::jit
