// How it works: the C entry points, and the walls around LLVM: its errors become codes and messages, its fatal errors
// an exception that ends at the entry point. After a fatal error LLVM's state is unknown, so every later request
// is refused.
#include "jit/plugin.hpp"

#include <llvm/IR/Function.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/raw_ostream.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "generator_identity.hpp"
#include "jit/llvm/emit_kernel.hpp"
#include "jit/llvm/emit_rows.hpp"
#include "jit/llvm/host_target.hpp"
#include "jit/llvm/image_linker.hpp"

namespace kplan::jit {
namespace {

struct FatalError {
  std::string reason;
};

/// Everything the plugin keeps between calls.
struct Session {
  std::unique_ptr<HostTarget> target;
  std::string broken;  ///< the fatal error that made this session unusable
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

/// Runs f; its failures are written down and give null or false.
template <class F>
auto guarded(PluginFailure* failure, F f) -> decltype(f()) {
  Session& now = session();
  if (!now.broken.empty()) {
    write(failure, "KP-C002",
          "the code generator stopped earlier: " + now.broken + "; restart the program, or set KPLAN_JIT=off");
    return {};
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
  return {};
}

/// A module with the function of the spec.
std::unique_ptr<llvm::Module> emit(llvm::LLVMContext& context, const Spec& spec, std::string& function) {
  auto module = std::make_unique<llvm::Module>("kplan", context);
  session().target->prepare(*module);
  const llvm::Function* const emitted =
      std::holds_alternative<RowSpec>(spec)
          ? emit_rows(*module, std::get<RowSpec>(spec))
          : emit_kernel(*module, std::get<KernelSpec>(spec), session().target->vector_bytes());
  function = emitted->getName().str();
#ifndef NDEBUG
  std::string complaint;
  llvm::raw_string_ostream stream(complaint);
  if (llvm::verifyModule(*module, &stream)) throw Failure{"KP-C005", "generated IR is malformed: " + complaint};
#endif
  return module;
}

/// Nanoseconds since the last call.
class Clock {
 public:
  std::uint64_t lap() {
    const auto now = std::chrono::steady_clock::now();
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(now - std::exchange(last_, now)).count());
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

bool generate(const Spec* spec, GeneratedCode* out, PluginFailure* failure) {
  return guarded(failure, [&] {
    Clock clock;
    llvm::LLVMContext context;
    context.setDiscardValueNames(true);
    std::string function;
    const auto module = emit(context, *spec, function);
    out->emission = clock.lap();
    const llvm::StringRef object = session().target->generate_object(*module);
    out->codegen = clock.lap();
    auto image = link_image(object, function);
    if (!image) fail("KP-C007", "cannot link generated code", image.takeError());
    out->image = static_cast<std::byte*>(std::malloc(image->size()));
    if (out->image == nullptr) throw std::bad_alloc();
    std::memcpy(out->image, image->data(), image->size());
    out->bytes = image->size();
    out->linking = clock.lap();
    return true;
  });
}

char* listing(const Spec* spec, int what, PluginFailure* failure) {
  return guarded(failure, [&]() -> char* {
    llvm::LLVMContext context;
    std::string function;
    const auto module = emit(context, *spec, function);
    std::string text;
    if (what == 0) {
      llvm::raw_string_ostream stream(text);
      module->print(stream, nullptr);
    } else {
      llvm::SmallVector<char, 0> assembly;
      if (auto error = session().target->generate_assembly(*module, assembly))
        fail("KP-C006", "no assembly", std::move(error));
      text.assign(assembly.begin(), assembly.end());
    }
    return strdup(text.c_str());
  });
}

void free_memory(void* memory) { std::free(memory); }

}  // namespace
}  // namespace kplan::jit

extern "C" __attribute__((visibility("default"))) const kplan::jit::CodeGenerator* kplan_code_generator(
    const kplan::jit::PluginRequest* request, kplan::jit::PluginFailure* failure) {
  using namespace kplan::jit;
  const PluginRequest own{.identity = generator_identity};
  if (request->version != own.version || request->spec_bytes != own.spec_bytes ||
      request->instruction_bytes != own.instruction_bytes || request->row_step_bytes != own.row_step_bytes ||
      request->arguments_bytes != own.arguments_bytes || std::strcmp(request->identity, generator_identity) != 0) {
    write(failure, "KP-C008", "the code generator belongs to another build of kplan");
    return nullptr;
  }
  static constexpr CodeGenerator generator{generate, listing, free_memory};
  return guarded(failure, [&]() -> const CodeGenerator* {
    if (session().target) return &generator;
    llvm::install_fatal_error_handler(on_fatal_error);
    auto target = HostTarget::create();
    if (!target) fail("KP-C009", "cannot generate code for this machine", target.takeError());
    session().target = std::move(*target);
    return &generator;
  });
}
