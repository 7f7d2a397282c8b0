// How it works: the C entry points, and the walls around LLVM: its errors become codes and messages, its fatal errors
// an exception that ends at the entry point. After a fatal error LLVM's state is unknown, so every later request
// is refused.
#include "jit/plugin.hpp"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/raw_ostream.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "jit/llvm/code_store.hpp"
#include "jit/llvm/emit_kernel.hpp"
#include "jit/llvm/host_target.hpp"

namespace kplan::jit {
namespace {

struct FatalError {
  std::string reason;
};

/// Everything the plugin keeps between calls. Never destroyed.
struct Session {
  std::unique_ptr<HostTarget> target;
  std::unique_ptr<CodeStore> store;
  std::string broken;  ///< the fatal error that made this session unusable
  bool is_exiting = false;
};

Session& session() {
  static auto* const the = new Session;
  return *the;
}

/// A failure on its way to the entry point.
struct Failure {
  const char* code;
  std::string message;
};

void on_fatal_error(void*, const char* reason, bool) { throw FatalError{reason}; }

void write(PluginFailure* out, const char* code, const std::string& message) {
  std::snprintf(out->code, sizeof out->code, "%s", code);
  std::snprintf(out->message, sizeof out->message, "%s", message.c_str());
}

[[noreturn]] void fail(const char* code, const std::string& what, llvm::Error error) {
  throw Failure{code, what + ": " + llvm::toString(std::move(error))};
}

/// Runs f; its failures are written down and give null.
template <class F>
auto guarded(PluginFailure* failure, F f) -> decltype(f()) {
  Session& now = session();
  if (!now.broken.empty()) {
    write(failure, "KP-C002",
          "the code generator stopped earlier: " + now.broken + "; restart the program, or set KPLAN_JIT=off");
    return nullptr;
  }
  try {
    return f();
  } catch (const Failure& f_) {
    write(failure, f_.code, f_.message);
  } catch (const FatalError& fatal) {
    now.broken = fatal.reason;
    write(failure, "KP-C003", "LLVM gave up: " + fatal.reason);
  } catch (const std::exception& error) {
    write(failure, "KP-C004", std::string("while generating code: ") + error.what());
  }
  return nullptr;
}

/// The kernels' module and the names of their functions.
std::unique_ptr<llvm::Module> emit(llvm::LLVMContext& context, const KernelSpec* const* specs, std::size_t count,
                                   std::vector<std::string>& names) {
  auto module = std::make_unique<llvm::Module>("kplan", context);
  session().target->prepare(*module);
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back(emit_kernel(*module, *specs[i], session().target->vector_bytes())->getName().str());
  }
#ifndef NDEBUG
  std::string complaint;
  llvm::raw_string_ostream stream(complaint);
  if (llvm::verifyModule(*module, &stream)) throw Failure{"KP-C005", "generated IR is malformed: " + complaint};
#endif
  return module;
}

void* compile(const KernelSpec* const* specs, std::size_t count, KernelFunction* functions, PluginFailure* failure) {
  return guarded(failure, [&]() -> void* {
    llvm::LLVMContext context;
    context.setDiscardValueNames(true);
    std::vector<std::string> names;
    const auto module = emit(context, specs, count, names);
    llvm::SmallVector<char, 0> object;
    if (auto error = session().target->generate_object(*module, object)) fail("KP-C006", "no object", std::move(error));
    std::vector<void*> addresses;
    auto code = session().store->add({object.data(), object.size()}, names, addresses);
    if (!code) fail("KP-C007", "cannot link generated code", code.takeError());
    for (std::size_t i = 0; i < count; ++i) functions[i] = reinterpret_cast<KernelFunction>(addresses[i]);
    return new StoredCode(std::move(*code));
  });
}

void release(void* batch) {
  std::unique_ptr<StoredCode> code(static_cast<StoredCode*>(batch));
  if (session().is_exiting || !session().broken.empty()) {
    (void)code.release();  // LLVM's own statics may be gone: the memory goes with the process
    return;
  }
  try {
    llvm::consumeError(session().store->remove(std::move(*code)));
  } catch (const FatalError& fatal) {
    session().broken = fatal.reason;
  }
}

char* listing(const KernelSpec* spec, int what, PluginFailure* failure) {
  return guarded(failure, [&]() -> char* {
    llvm::LLVMContext context;
    std::vector<std::string> names;
    const auto module = emit(context, &spec, 1, names);
    std::string text;
    if (what == 0) {
      llvm::raw_string_ostream stream(text);
      module->print(stream, nullptr);
    } else {
      llvm::SmallString<0> assembly;
      if (auto error = session().target->generate_assembly(*module, assembly))
        fail("KP-C006", "no assembly", std::move(error));
      text = assembly.str().str();
    }
    return strdup(text.c_str());
  });
}

void free_text(char* text) { std::free(text); }

}  // namespace
}  // namespace kplan::jit

extern "C" __attribute__((visibility("default"))) const kplan::jit::CodeGenerator* kplan_code_generator(
    const kplan::jit::PluginRequest* request, kplan::jit::PluginFailure* failure) {
  using namespace kplan::jit;
  const PluginRequest own;
  if (request->version != own.version || request->spec_bytes != own.spec_bytes ||
      request->instruction_bytes != own.instruction_bytes || request->arguments_bytes != own.arguments_bytes) {
    write(failure, "KP-C008", "the code generator belongs to another build of kplan");
    return nullptr;
  }
  static constexpr CodeGenerator generator{compile, release, listing, free_text};
  return guarded(failure, [&]() -> const CodeGenerator* {
    if (session().store) return &generator;
    llvm::install_fatal_error_handler(on_fatal_error);
    auto target = HostTarget::create();
    if (!target) fail("KP-C009", "cannot generate code for this machine", target.takeError());
    auto store = CodeStore::create();
    if (!store) fail("KP-C010", "cannot make executable memory", store.takeError());
    session().target = std::move(*target);
    session().store = std::move(*store);
    std::atexit([] { session().is_exiting = true; });
    return &generator;
  });
}
