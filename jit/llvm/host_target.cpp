// How it works: modules arrive as finished vector code, so no IR optimisation runs, only the code generator at
// O1 without loop-strength reduction, which takes long and undoes the addresses we chose. Floating point is
// strict: nothing is contracted.
#include "jit/llvm/host_target.hpp"

#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>

#include <string>

namespace kplan::jit {
namespace {

/// Sets a switch of the code generator that has no other interface. The switches are this plugin's own copies, and
/// they are set once, before the first module.
void set_switch(const char* name) {
  auto& switches = llvm::cl::getRegisteredOptions();
  const auto it = switches.find(name);
  if (it == switches.end()) return;
  it->second->addOccurrence(0, name, "true");
}

int widest_vector(const llvm::TargetMachine& machine) {
  if (!machine.getTargetTriple().isX86()) return 16;
  const llvm::StringRef features = machine.getTargetFeatureString();
  auto has = [&](const char* name) {
    llvm::SmallVector<llvm::StringRef, 128> parts;
    features.split(parts, ',');
    return llvm::is_contained(parts, name);
  };
  // Longer ones take up to half as long again on some processors where lines come from memory, as of Cascade Lake.
  const bool prefers_short = machine.getMCSubtargetInfo()->checkFeatures("+prefer-256-bit");
  if (has("+avx512f") && has("+avx512bw") && has("+avx512dq") && has("+avx512vl") && !prefers_short) return 64;
  return has("+avx2") ? 32 : 16;
}

}  // namespace

llvm::Expected<std::unique_ptr<HostTarget>> HostTarget::create() {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  for (const char* name : {"disable-lsr", "disable-partial-libcall-inlining", "disable-mergeicmps"}) set_switch(name);

  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder) return builder.takeError();
  builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::Less);
  builder->setCodeModel(llvm::CodeModel::Small);
  builder->setRelocationModel(llvm::Reloc::PIC_);
  builder->getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
  auto machine = builder->createTargetMachine();
  if (!machine) return machine.takeError();

  std::unique_ptr<HostTarget> out(new HostTarget);
  out->machine_ = std::move(*machine);
  out->vector_bytes_ = widest_vector(*out->machine_);
  if (auto error = out->add_passes(out->object_passes_, out->object_stream_, llvm::CodeGenFileType::ObjectFile))
    return error;
  return out;
}

void HostTarget::prepare(llvm::Module& module) const {
  module.setTargetTriple(machine_->getTargetTriple().str());
  module.setDataLayout(machine_->createDataLayout());
}

llvm::Error HostTarget::add_passes(llvm::legacy::PassManager& passes, llvm::raw_pwrite_stream& to,
                                   llvm::CodeGenFileType type) {
  if (!machine_->addPassesToEmitFile(passes, to, nullptr, type, /*DisableVerify=*/true)) return llvm::Error::success();
  return llvm::createStringError("the code generator cannot write this kind of file");
}

llvm::StringRef HostTarget::generate_object(llvm::Module& module) {
  object_.clear();
  object_passes_.run(module);
  return {object_.data(), object_.size()};
}

llvm::Error HostTarget::generate_assembly(llvm::Module& module, llvm::SmallVectorImpl<char>& text) {
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  machine_->Options.MCOptions.AsmVerbose = true;
  if (auto error = add_passes(passes, stream, llvm::CodeGenFileType::AssemblyFile)) return error;
  passes.run(module);
  return llvm::Error::success();
}

}  // namespace kplan::jit
