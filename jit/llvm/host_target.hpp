#pragma once
// The machine we generate code for: this one. Owns the target machine and turns modules into objects or text.

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/Error.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>

namespace kplan::jit {

class HostTarget {
 public:
  /// Detects the processor and sets the code generator up. Cost: a millisecond.
  static llvm::Expected<std::unique_ptr<HostTarget>> create();

  /// Gives the module this target's triple and data layout.
  void prepare(llvm::Module& module) const;
  /// Machine code: an object file in memory, valid until the next one is generated.
  llvm::StringRef generate_object(llvm::Module& module);
  /// Assembly with comments.
  llvm::Error generate_assembly(llvm::Module& module, llvm::SmallVectorImpl<char>& text);

  /// The widest vector that is worth using, in bytes: 16, 32 or 64.
  int vector_bytes() const { return vector_bytes_; }

 private:
  HostTarget() : object_stream_(object_) {}
  llvm::Error add_passes(llvm::legacy::PassManager& passes, llvm::raw_pwrite_stream& to, llvm::CodeGenFileType type);

  std::unique_ptr<llvm::TargetMachine> machine_;
  int vector_bytes_ = 16;
  llvm::SmallVector<char, 0> object_;
  llvm::raw_svector_ostream object_stream_;
  llvm::legacy::PassManager object_passes_;  ///< for one module after the other: setting it up takes half a millisecond
};

}  // namespace kplan::jit
