// How it works: a code generator without LLVM, for tests of what is around one. All its kernels are the same machine
// code: return 77, do nothing. It takes KPLAN_FAKE_MILLISECONDS for each, appends a line to KPLAN_FAKE_LOG, the name
// and the first extent, and fails on kernels named "bad".
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "generator_identity.hpp"
#include "jit/code_image.hpp"
#include "jit/plugin.hpp"

namespace {

using namespace kplan::jit;

#if defined(__x86_64__)
constexpr std::uint8_t return_77[] = {0xb8, 77, 0, 0, 0, 0xc3};  // mov eax, 77; ret
#elif defined(__aarch64__)
constexpr std::uint32_t return_77[] = {0xd28009a0, 0xd65f03c0};  // mov x0, 77; ret
#endif

const std::string& name_of(const Spec& spec) {
  return std::visit([](const auto& s) -> const std::string& { return s.name; }, spec);
}

void log(const Spec& spec) {
  const char* path = std::getenv("KPLAN_FAKE_LOG");
  if (path == nullptr) return;
  const auto* const kernel = std::get_if<KernelSpec>(&spec);
  const std::int64_t extent = kernel && !kernel->extents.empty() ? kernel->extents[0] : 0;
  const std::string line = name_of(spec) + " " + std::to_string(extent) + "\n";
  const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (write(file, line.data(), line.size()) < 0) std::abort();
  close(file);
}

bool generate(const Spec* spec, GeneratedCode* out, PluginFailure* failure) {
  log(*spec);
  if (const char* milliseconds = std::getenv("KPLAN_FAKE_MILLISECONDS"))
    usleep(1000 * static_cast<useconds_t>(std::atoi(milliseconds)));
  if (name_of(*spec) == "bad") {
    std::snprintf(failure->code, sizeof failure->code, "KP-C006");
    std::snprintf(failure->message, sizeof failure->message, "a bad kernel");
    return false;
  }
  const auto image = CodeImage::write(std::as_bytes(std::span(return_77)), 16, 0, {}, {});
  out->image = static_cast<std::byte*>(std::malloc(image.size()));
  std::memcpy(out->image, image.data(), image.size());
  out->bytes = image.size();
  return true;
}

char* listing(const Spec*, int, PluginFailure*) { return strdup("return 77"); }

}  // namespace

extern "C" __attribute__((visibility("default"))) const CodeGenerator* kplan_code_generator(
    const PluginRequest* request, PluginFailure*) {
  static constexpr CodeGenerator generator{generate, listing, std::free};
  return std::strcmp(request->identity, generator_identity) == 0 ? &generator : nullptr;
}
