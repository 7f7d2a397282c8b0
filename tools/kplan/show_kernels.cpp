// How it works: the rank's schedule is lowered as for a run; each kernel spec is printed once, under the calls that use
// it, and calls without a kernel are block copies.
#include <fmt/format.h>

#include <functional>

#include "engine/runtime/program.hpp"
#include "engine/runtime/row_choice.hpp"
#include "engine/runtime/row_statement.hpp"
#include "tools/kplan/dry_run.hpp"
#include "tools/kplan/stages.hpp"

namespace kplan::cli {
namespace {

struct Lowered {
  DryRun dry;
  DryRun::Visit visit;
  SpecTable specs;
  std::vector<LoweredStatement> statements;
  std::vector<std::unique_ptr<RowStatement>> rows;  ///< by statement; null: never goes by rows

  Lowered(const Contents& contents, std::int64_t rank, std::int64_t size)
      : dry(contents, size), visit(dry.visit(rank)), statements(lower(visit.bound, visit.schedule, specs)) {
    const auto& all = visit.bound.model->statements;
    for (std::size_t k = 0; k < all.size(); ++k) {
      const bool may_be = visit.schedule.statements[k].knowledge.is_varying && takes_part(visit.bound, all[k]);
      rows.push_back(may_be ? RowStatement::of(in_group(visit.bound, all[k]), k, jit::Wait::not_at_all) : nullptr);
    }
  }
};

/// Calls f(call, what it does, whether the message is sent from where it lies) for every kernel call, in the order of
/// the statements.
void each_call(const Lowered& lowered, const std::function<void(const KernelCall&, const std::string&, bool)>& f) {
  for (std::size_t k = 0; k < lowered.statements.size(); ++k) {
    const PlanModel& plan = *lowered.visit.bound.model;
    if (lowered.rows[k] && goes_by_rows(plan, with_own_rank(plan.statements[k]))) continue;
    const std::string& name = plan.statements[k].name;
    const LoweredStatement& s = lowered.statements[k];
    for (const auto& m : s.sends)
      for (const KernelCall& c : m.calls)
        f(c, fmt::format("{}: pack for rank {}", name, m.peer), m.in_place.has_value());
    for (const KernelCall& c : s.staging) f(c, fmt::format("{}: read what stays on this rank", name), false);
    for (const auto& m : s.receives) {
      const char* const share = m.own.empty() ? "" : ", with what stays on this rank";
      for (const KernelCall& c : m.calls) f(c, fmt::format("{}: unpack from rank {}{}", name, m.peer, share), false);
      for (const KernelCall& c : m.own)
        f(c, fmt::format("{}: move what stays on this rank, where the message is not unpacked", name), false);
    }
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

struct Listed {
  struct Entry {
    jit::Spec spec;
    std::vector<std::string> uses;
  };
  std::vector<Entry> kernels;  ///< those with uses
  std::string copies;
};

Listed listed_of(const Lowered& lowered) {
  Listed out;
  for (const jit::KernelSpec& spec : lowered.specs.specs()) out.kernels.push_back({spec, {}});
  const PlanModel& plan = *lowered.visit.bound.model;
  each_call(lowered, [&](const KernelCall& c, const std::string& what, bool is_in_place) {
    if (c.spec >= 0) {
      out.kernels[static_cast<std::size_t>(c.spec)].uses.push_back(what);
      return;
    }
    out.copies += is_in_place ? fmt::format("{}: no copy, {} bytes are sent from {}\n", what, c.copy_bytes,
                                            stream_text(c.streams[1], plan))
                              : fmt::format("{}: block copy of {} bytes from {} to {}\n", what, c.copy_bytes,
                                            stream_text(c.streams[1], plan), stream_text(c.streams[0], plan));
  });
  for (std::size_t k = 0; k < lowered.rows.size(); ++k) {
    if (!lowered.rows[k]) continue;
    for (const auto& [what, call] : lowered.rows[k]->calls())
      out.kernels.push_back(
          {call->spec, {fmt::format("{}: {}", plan.statements[k].name, what), call->arguments_text(plan)}});
  }
  std::erase_if(out.kernels, [](const Listed::Entry& entry) { return entry.uses.empty(); });
  return out;
}

/// The lines, and the uses, above kernel number k.
std::string heading(const Listed& listed, std::size_t k, const std::string& comment) {
  const auto& [spec, uses] = listed.kernels[k];
  const std::string& name = std::visit([](const auto& s) -> const std::string& { return s.name; }, spec);
  const std::string why_not =
      jit::is_too_long(spec) ? fmt::format("{} too long for machine code: runs without\n", comment) : "";
  return fmt::format("{} kernel {} of {}: {}, for\n{}{}", comment, k + 1, listed.kernels.size(), name,
                     uses_text(uses, comment), why_not);
}

}  // namespace

std::string kernels_text(const Contents& contents, std::int64_t rank, std::int64_t size) {
  const Listed listed = listed_of(Lowered(contents, rank, size));
  std::string out;
  for (std::size_t k = 0; k < listed.kernels.size(); ++k)
    out += heading(listed, k, "//") +
           std::visit([](const auto& spec) { return spec.to_text(); }, listed.kernels[k].spec) + "\n";
  if (listed.kernels.empty()) out += fmt::format("// no kernels on rank {} of {}\n", rank, size);
  if (!listed.copies.empty()) out += fmt::format("// without a kernel\n{}", listed.copies);
  return out;
}

std::string code_text(const Contents& contents, std::int64_t rank, std::int64_t size, bool is_assembly) {
  const Listed listed = listed_of(Lowered(contents, rank, size));
  const std::string comment = is_assembly ? "#" : ";";
  if (listed.kernels.empty())
    return fmt::format("{} no kernels on rank {} of {}: whatever it moves is moved in blocks\n", comment, rank, size);
  jit::Compiler& compiler = jit::Compiler::instance();
  if (!compiler.is_available())
    throw Unsupported("KP-L007",
                      fmt::format("there is no code to show, kernels run precompiled: {}", compiler.why_not()));
  std::string out;
  for (std::size_t k = 0; k < listed.kernels.size(); ++k) {
    const jit::Spec& spec = listed.kernels[k].spec;
    out += heading(listed, k, comment);
    if (!jit::is_too_long(spec)) out += compiler.listing(spec, is_assembly ? jit::Listing::assembly : jit::Listing::ir);
    out += "\n";
  }
  return out;
}

}  // namespace kplan::cli
