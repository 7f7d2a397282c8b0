// How it works: the rank's schedule is lowered as for a run; each kernel spec is printed once, under the calls that use
// it, and calls without a kernel are block copies.
#include <fmt/format.h>

#include <functional>

#include "engine/runtime/program.hpp"
#include "tools/kplan/dry_run.hpp"
#include "tools/kplan/stages.hpp"

namespace kplan::cli {
namespace {

struct Lowered {
  DryRun dry;
  DryRun::Visit visit;
  SpecTable specs;
  std::vector<LoweredStatement> statements;

  Lowered(const Contents& contents, std::int64_t rank, std::int64_t size)
      : dry(contents, size), visit(dry.visit(rank)), statements(lower(visit.bound, visit.schedule, specs)) {}
};

/// Calls f(call, what it does, whether the message is sent from where it lies) for every kernel call, in the order of
/// the statements.
void each_call(const Lowered& lowered, const std::function<void(const KernelCall&, const std::string&, bool)>& f) {
  for (std::size_t k = 0; k < lowered.statements.size(); ++k) {
    const std::string& name = lowered.visit.bound.model->statements[k].name;
    const LoweredStatement& s = lowered.statements[k];
    for (const auto& m : s.sends)
      for (const KernelCall& c : m.calls)
        f(c, fmt::format("{}: pack for rank {}", name, m.peer), m.in_place.has_value());
    for (const KernelCall& c : s.staging) f(c, fmt::format("{}: read what stays on this rank", name), false);
    for (const auto& m : s.receives)
      for (const KernelCall& c : m.calls) f(c, fmt::format("{}: unpack from rank {}", name, m.peer), false);
    for (const KernelCall& c : s.local)
      f(c, fmt::format("{}: {} what stays on this rank", name, s.staging.empty() ? "move" : "write"), false);
  }
}

std::string stream_text(const StreamUse& s, const PlanModel& plan) {
  if (s.kind == StreamKind::buffer)
    return fmt::format("{} at byte {}", plan.buffers[static_cast<std::size_t>(s.buffer)].name, s.offset_bytes);
  return fmt::format("the message at byte {}", s.offset_bytes);
}

/// The uses of a kernel, one a line; of many, the first.
std::string uses_text(const std::vector<std::string>& uses, const std::string& comment) {
  constexpr std::size_t most_shown = 8;
  std::string out;
  for (std::size_t k = 0; k < uses.size() && k < most_shown; ++k) out += fmt::format("{}  {}\n", comment, uses[k]);
  if (uses.size() > most_shown) out += fmt::format("{}  and {} more\n", comment, uses.size() - most_shown);
  return out;
}

struct Uses {
  std::vector<std::vector<std::string>> by_spec;
  std::string copies;
};

Uses uses_of(const Lowered& lowered) {
  Uses out;
  out.by_spec.resize(lowered.specs.specs().size());
  each_call(lowered, [&](const KernelCall& c, const std::string& what, bool is_in_place) {
    if (c.spec >= 0) {
      out.by_spec[static_cast<std::size_t>(c.spec)].push_back(what);
      return;
    }
    const PlanModel& plan = *lowered.visit.bound.model;
    out.copies += is_in_place ? fmt::format("{}: no copy, {} bytes are sent from {}\n", what, c.copy_bytes,
                                            stream_text(c.streams[1], plan))
                              : fmt::format("{}: block copy of {} bytes from {} to {}\n", what, c.copy_bytes,
                                            stream_text(c.streams[1], plan), stream_text(c.streams[0], plan));
  });
  return out;
}

}  // namespace

std::string kernels_text(const Contents& contents, std::int64_t rank, std::int64_t size) {
  const Lowered lowered(contents, rank, size);
  const Uses uses = uses_of(lowered);
  std::string out;
  for (std::size_t k = 0; k < uses.by_spec.size(); ++k) {
    const jit::KernelSpec& spec = lowered.specs.specs()[k];
    out += fmt::format("// kernel {} of {}: {}, for\n{}{}\n", k + 1, uses.by_spec.size(), spec.name,
                       uses_text(uses.by_spec[k], "//"), spec.to_text());
  }
  if (uses.by_spec.empty()) out += fmt::format("// no kernels on rank {} of {}\n", rank, size);
  if (!uses.copies.empty()) out += fmt::format("// without a kernel\n{}", uses.copies);
  return out;
}

std::string code_text(const Contents& contents, std::int64_t rank, std::int64_t size, bool is_assembly) {
  const Lowered lowered(contents, rank, size);
  const Uses uses = uses_of(lowered);
  const std::string comment = is_assembly ? "#" : ";";
  if (uses.by_spec.empty())
    return fmt::format("{} no kernels on rank {} of {}: whatever it moves is moved in blocks\n", comment, rank, size);
  jit::Compiler& compiler = jit::Compiler::instance();
  if (!compiler.is_available())
    throw Unsupported("KP-L007",
                      fmt::format("there is no code to show, kernels are interpreted: {}", compiler.why_not()));
  std::string out;
  for (std::size_t k = 0; k < uses.by_spec.size(); ++k) {
    const jit::KernelSpec& spec = lowered.specs.specs()[k];
    out += fmt::format("{} kernel {} of {}: {}, for\n{}", comment, k + 1, uses.by_spec.size(), spec.name,
                       uses_text(uses.by_spec[k], comment));
    out += compiler.listing(spec, is_assembly ? jit::Listing::assembly : jit::Listing::ir) + "\n";
  }
  return out;
}

}  // namespace kplan::cli
