#include "engine/runtime/ready_rows.hpp"

namespace kplan {

ReadyRows::ReadyRows(RowCall call, const RankState& state, jit::Wait wait)
    : call_(std::move(call)), scalars_(call_.scalars.size()), arrays_(call_.buffers.size()) {
  kernel_ = jit::Compiler::instance().compile(std::span(&call_.spec, 1), wait).at(0);
  for (std::size_t k = 0; k < scalars_.size(); ++k) {
    const RowScalar& scalar = call_.scalars[k];
    const auto n = static_cast<std::size_t>(scalar.number), d = static_cast<std::size_t>(scalar.dimension);
    switch (scalar.kind) {
      case RowScalar::Kind::rank: scalars_[k] = state.rank; break;
      case RowScalar::Kind::size: scalars_[k] = state.size; break;
      case RowScalar::Kind::parameter: parameters_.push_back(k); break;
      case RowScalar::Kind::extent: scalars_[k] = state.layouts[n].shape[d]; break;
      case RowScalar::Kind::stride: scalars_[k] = state.layouts[n].strides[d]; break;
      case RowScalar::Kind::element_count: scalars_[k] = state.layouts[n].element_count; break;
      case RowScalar::Kind::given: given_ = k; break;
    }
  }
}

[[gnu::hot]] jit::RowsOutcome ReadyRows::run(const RankState& state, std::int64_t given,
                                             std::span<const std::byte* const> tables, const Target& target) {
  const jit::RowFunction function = kernel_.function();
  if (!function) return jit::rows_left;
  for (const std::size_t k : parameters_)
    scalars_[k] = state.parameters[static_cast<std::size_t>(call_.scalars[k].number)].as_integer();
  if (given_) scalars_[*given_] = given;
  for (std::size_t k = 0; k < arrays_.size(); ++k) {
    const int buffer = call_.buffers[k];
    arrays_[k] = buffer < 0 ? tables[k] : state.contents[static_cast<std::size_t>(buffer)];
    if (!arrays_[k]) return jit::rows_left;
  }
  const jit::RowArguments arguments{scalars_.data(),    arrays_.data(),     target.columns.data(),
                                    target.room.data(), target.rows.data(), call_.most_turns};
  return function(&arguments);
}

}  // namespace kplan
