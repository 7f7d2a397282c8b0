// How it works: JITLink does the linking, into plain memory and for addresses that nothing really has: the image at
// one place, library functions so far from it that JITLink reaches them through pointers only. What then is relative
// holds anywhere; the pointers are noted for the one who places the image.
#include "jit/llvm/image_linker.hpp"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/aarch64.h>
#include <llvm/ExecutionEngine/JITLink/x86_64.h>
#include <llvm/Support/MemoryBuffer.h>

#include <algorithm>

#include "jit/code_image.hpp"

namespace kplan::jit {
namespace {

using namespace llvm;
using namespace llvm::jitlink;

constexpr std::uint64_t image_base = std::uint64_t(1) << 33;
constexpr std::uint64_t library_base = std::uint64_t(1) << 46;

Error failure(const Twine& what) { return make_error<StringError>(what, inconvertibleErrorCode()); }

/// Memory for one graph: all segments next to each other, in a vector.
class FlatMemory final : public JITLinkMemoryManager {
 public:
  using JITLinkMemoryManager::allocate;
  void allocate(const JITLinkDylib*, LinkGraph& graph, OnAllocatedFunction on_allocated) override {
    BasicLayout layout(graph);
    std::uint64_t size = 0;
    for (auto& [lifetime, segment] : layout.segments()) {
      size = alignTo(size, segment.Alignment);
      segment.Addr = orc::ExecutorAddr(image_base + size);
      size += segment.ContentSize + segment.ZeroFillSize;
      alignment = std::max<std::uint64_t>(alignment, segment.Alignment.value());
    }
    bytes.assign(size, std::byte{0});
    for (auto& [lifetime, segment] : layout.segments())
      segment.WorkingMem = reinterpret_cast<char*>(bytes.data() + (segment.Addr.getValue() - image_base));
    if (auto error = layout.apply()) return on_allocated(std::move(error));
    on_allocated(std::make_unique<InFlight>());
  }
  void deallocate(std::vector<FinalizedAlloc> allocations, OnDeallocatedFunction on_deallocated) override {
    for (FinalizedAlloc& a : allocations) a.release();
    on_deallocated(Error::success());
  }

  std::vector<std::byte> bytes;
  std::uint64_t alignment = 1;

 private:
  struct InFlight final : InFlightAlloc {
    void finalize(OnFinalizedFunction on_finalized) override {
      on_finalized(FinalizedAlloc(orc::ExecutorAddr(image_base)));
    }
    void abandon(OnAbandonedFunction on_abandoned) override { on_abandoned(Error::success()); }
  };
};

/// What one link finds out.
struct Found {
  Error error = Error::success();
  std::uint64_t entry = UINT64_MAX;
  std::vector<CodeImage::Call> calls;
  std::vector<std::uint32_t> pointers;
};

bool is_pointer(const LinkGraph& graph, Edge::Kind kind) {
  return kind == (graph.getTargetTriple().isX86() ? Edge::Kind(x86_64::Pointer64) : Edge::Kind(aarch64::Pointer64));
}

/// Whether the edge's value is an address in a form that cannot be corrected later.
bool is_fixed(const LinkGraph& graph, Edge::Kind kind) {
  static constexpr Edge::Kind on_x86[] = {x86_64::Pointer32, x86_64::Pointer32Signed, x86_64::Pointer16,
                                          x86_64::Pointer8};
  static constexpr Edge::Kind on_arm[] = {aarch64::Pointer32, aarch64::MoveWide16};
  return graph.getTargetTriple().isX86() ? is_contained(on_x86, kind) : is_contained(on_arm, kind);
}

Error note_pointers(LinkGraph& graph, FlatMemory& memory, Found& found) {
  for (Block* block : graph.blocks()) {
    for (const Edge& edge : block->edges()) {
      if (!edge.isRelocation()) continue;
      const auto at = static_cast<std::uint32_t>(block->getFixupAddress(edge).getValue() - image_base);
      const std::uint64_t target = edge.getTarget().getAddress().getValue();
      const bool is_library = target >= library_base;
      if (is_pointer(graph, edge.getKind())) {
        if (is_library) {
          found.calls.push_back({at, static_cast<std::uint32_t>((target - library_base) >> 20)});
        } else {
          const std::uint64_t offset = target + static_cast<std::uint64_t>(edge.getAddend()) - image_base;
          std::memcpy(memory.bytes.data() + at, &offset, sizeof offset);
          found.pointers.push_back(at);
        }
      } else if (is_library || is_fixed(graph, edge.getKind())) {
        return failure("the code has a reference of kind " + Twine(graph.getEdgeKindName(edge.getKind())) +
                       " that cannot be moved");
      }
    }
  }
  return Error::success();
}

class ImageContext final : public JITLinkContext {
 public:
  ImageContext(FlatMemory& memory, Found& found, StringRef function)
      : JITLinkContext(nullptr), memory_(memory), found_(found), function_(function) {}

  JITLinkMemoryManager& getMemoryManager() override { return memory_; }
  void notifyFailed(Error error) override { found_.error = joinErrors(std::move(found_.error), std::move(error)); }
  void lookup(const LookupMap& symbols, std::unique_ptr<JITLinkAsyncLookupContinuation> continuation) override {
    AsyncLookupResult out;
    for (const auto& [name, flags] : symbols) {
      const auto* it = std::find(std::begin(library_functions), std::end(library_functions), std::string_view(name));
      if (it == std::end(library_functions)) return continuation->run(failure("the code calls " + name));
      const auto number = static_cast<std::uint64_t>(it - std::begin(library_functions));
      out[name] = {orc::ExecutorAddr(library_base + (number << 20)), JITSymbolFlags::Exported};
    }
    continuation->run(std::move(out));
  }
  Error notifyResolved(LinkGraph& graph) override {
    for (Symbol* symbol : graph.defined_symbols()) {
      if (symbol->hasName() && symbol->getName() == function_)
        found_.entry = symbol->getAddress().getValue() - image_base;
    }
    return found_.entry == UINT64_MAX ? failure("the object does not hold " + function_) : Error::success();
  }
  void notifyFinalized(JITLinkMemoryManager::FinalizedAlloc allocation) override { allocation.release(); }
  Error modifyPassConfig(LinkGraph&, PassConfiguration& passes) override {
    passes.PostFixupPasses.push_back([this](LinkGraph& graph) { return note_pointers(graph, memory_, found_); });
    return Error::success();
  }

 private:
  FlatMemory& memory_;
  Found& found_;
  StringRef function_;
};

}  // namespace

Expected<std::vector<std::byte>> link_image(StringRef object, StringRef function) {
  auto graph = createLinkGraphFromObject(MemoryBufferRef(object, "kernel"));
  if (!graph) return graph.takeError();
  FlatMemory memory;
  Found found;
  // Pages are the only thing that addresses on this machine may be relative to.
  if (!(*graph)->getTargetTriple().isX86()) memory.alignment = 4096;
  link(std::move(*graph), std::make_unique<ImageContext>(memory, found, function));  // everything happens in here
  if (found.error) return std::move(found.error);
  return CodeImage::write(memory.bytes, static_cast<std::uint32_t>(memory.alignment),
                          static_cast<std::uint32_t>(found.entry), found.calls, found.pointers);
}

}  // namespace kplan::jit
