// How it works: the engine's own steps (bind, draft, tell, finish, lower, compile) for all ranks of a case, one after
// the other in this process.
#include "tools/bench/kernels/dry_program.hpp"

#include <stdexcept>

namespace kplan::bench {
namespace {

Program program_of(const std::vector<BoundValues>& values, int rank) {
  const BoundPlan& bound = values[static_cast<std::size_t>(rank)].bound;
  const std::vector<Knowledge> knowledge = infer_knowledge(*bound.model);
  std::vector<std::pair<std::int64_t, Unfilled<std::byte>>> letters;
  for (std::size_t r = 0; r < values.size(); ++r)
    for (auto& [to, bytes] : letters_of(draft_schedule(values[r].bound, knowledge)))
      if (to == rank) letters.emplace_back(static_cast<std::int64_t>(r), std::move(bytes));
  const std::vector<std::pair<std::int64_t, std::span<const std::byte>>> told(letters.begin(), letters.end());
  return make_program(bound, finish_schedule(bound, draft_schedule(bound, knowledge), told), {},
                      jit::Wait::until_compiled);
}

std::vector<BoundValues> values_of(const std::vector<Case>& cases) {
  std::vector<BoundValues> out;
  for (std::size_t r = 0; r < cases.size(); ++r) {
    const Planned& planned = *cases[r].planned;
    const std::shared_ptr<const PlanModel> model(cases[r].planned, &planned.plan.model());
    out.push_back(
        bind_values(model, planned.values, static_cast<std::int64_t>(r), static_cast<std::int64_t>(cases.size())));
  }
  return out;
}

}  // namespace

DryProgram::DryProgram(const std::vector<Case>& cases, int rank)
    : values_(values_of(cases)), program_(program_of(values_, rank)), memory_(program_.bound.model->buffers.size()) {
  const Case& mine = cases[static_cast<std::size_t>(rank)];
  for (std::size_t k = 0; k < mine.planned->names.size(); ++k) {
    const Array& array = mine.exchange->arrays[k];
    const auto b = static_cast<std::size_t>(program_.bound.model->find_buffer(mine.planned->names[k]));
    memory_[b] = {array.data, array.size_bytes()};
  }
}

OutgoingMessage& DryProgram::outgoing(int peer) {
  for (OutgoingMessage& m : statement().outgoing)
    if (m.world_rank == peer) return m;
  throw std::runtime_error("there is no message to this rank");
}

std::size_t DryProgram::bytes_to(int peer) const { return const_cast<DryProgram*>(this)->outgoing(peer).bytes; }

bool DryProgram::is_in_place(int peer) const {
  return const_cast<DryProgram*>(this)->outgoing(peer).in_place.has_value();
}

void DryProgram::pack(int peer, std::byte* message) {
  for (ReadyCall& call : outgoing(peer).calls) call(memory_, message);
}

void DryProgram::unpack(int peer, const std::byte* message) {
  for (IncomingMessage& m : statement().incoming)
    if (!m.is_local && m.world_rank == peer)
      for (ReadyCall& call : m.calls) call(memory_, const_cast<std::byte*>(message));
}

void DryProgram::move_local() {
  for (IncomingMessage& m : statement().incoming) {
    if (!m.is_local) continue;
    for (ReadyCall& call : m.staging) call(memory_, m.staged.data());
    for (ReadyCall& call : m.calls) call(memory_, m.staged.data());
  }
}

}  // namespace kplan::bench
