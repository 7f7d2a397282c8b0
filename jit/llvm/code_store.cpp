// How it works: every batch is a JITDylib with one tracker. Both are removed by name when the batch goes: a tracker
// that is only dropped leaves its memory behind, and so does a dylib.
#include "jit/llvm/code_store.hpp"

#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>

#include <cstring>

namespace kplan::jit {

using namespace llvm;
using namespace llvm::orc;

Expected<std::unique_ptr<CodeStore>> CodeStore::create() {
  auto control = SelfExecutorProcessControl::Create(nullptr, std::make_unique<InPlaceTaskDispatcher>());
  if (!control) return control.takeError();
  std::unique_ptr<CodeStore> out(new CodeStore);
  out->session_ = std::make_unique<ExecutionSession>(std::move(*control));
  // Failures reach the caller as values; what the session would print besides is a repetition.
  out->session_->setErrorReporter([](Error error) { consumeError(std::move(error)); });
  out->linker_ = std::make_unique<ObjectLinkingLayer>(*out->session_);
  out->process_ = &out->session_->createBareJITDylib("process");
  SymbolMap symbols;
  symbols[out->session_->intern("memcpy")] = {ExecutorAddr::fromPtr(&std::memcpy),
                                              JITSymbolFlags::Exported | JITSymbolFlags::Callable};
  if (auto error = out->process_->define(absoluteSymbols(std::move(symbols)))) return error;
  return out;
}

CodeStore::~CodeStore() {
  if (session_) consumeError(session_->endSession());
}

Expected<StoredCode> CodeStore::add(StringRef object, const std::vector<std::string>& names,
                                    std::vector<void*>& addresses) {
  StoredCode code;
  code.dylib = &session_->createBareJITDylib("batch" + std::to_string(batch_count_++));
  code.dylib->addToLinkOrder(*process_);
  code.tracker = code.dylib->createResourceTracker();
  auto look_up = [&]() -> Error {
    if (auto error = linker_->add(code.tracker, MemoryBuffer::getMemBufferCopy(object, code.dylib->getName())))
      return error;
    SymbolLookupSet wanted;
    for (const std::string& name : names) wanted.add(session_->intern(name));
    auto found = session_->lookup({{code.dylib, JITDylibLookupFlags::MatchExportedSymbolsOnly}}, std::move(wanted));
    if (!found) return found.takeError();
    for (const std::string& name : names) {
      addresses.push_back((*found)[session_->intern(name)].getAddress().toPtr<void*>());
    }
    return Error::success();
  };
  if (auto error = look_up()) return joinErrors(std::move(error), remove(code));
  return code;
}

Error CodeStore::remove(StoredCode code) {
  Error error = code.tracker->remove();
  code.tracker.reset();
  return joinErrors(std::move(error), session_->removeJITDylib(*code.dylib));
}

}  // namespace kplan::jit
