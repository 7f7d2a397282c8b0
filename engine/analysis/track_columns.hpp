#pragma once
// The tracks of sources over a block of environments.

#include <optional>
#include <vector>

#include "engine/analysis/columns.hpp"
#include "engine/analysis/pieces.hpp"

namespace kplan {

class TrackColumns {
 public:
  /// `sources` and what they name must live as long.
  TrackColumns(ColumnEvaluator& columns, const std::vector<TrackSource>& sources, const std::vector<Layout>& layouts);

  std::size_t size() const { return sources_.size(); }

  /// Works out what all environments of the block have one of. The rest is worked out by append. Throws BlockFault.
  void take(const Block& block);
  /// Appends the tracks of the block's environments [first, end), as many elements as they have, and returns how many.
  /// Throws BlockFault.
  std::int64_t append(std::size_t first, std::size_t end, std::vector<GrowingTrack>& tracks);

 private:
  std::int64_t append_one(std::size_t row, std::vector<GrowingTrack>& tracks);
  bool is_several(const TrackSource& source) const;
  void column_of(std::size_t source, std::int64_t* out);
  std::vector<std::int64_t> track_at(std::size_t source, std::size_t row);

  ColumnEvaluator& columns_;
  const Block* block_ = nullptr;
  const std::vector<TrackSource>& sources_;
  const std::vector<Layout>& layouts_;
  std::vector<std::optional<ColumnProgram>> programs_;  ///< by source; of elements that environments have one of
  std::vector<Column> values_;                          ///< by source; empty where environments have several
  bool has_slices_ = false;
};

/// Whether the reference can name more or fewer elements than one.
bool is_slice(const Expr& e, const Layout& layout);

}  // namespace kplan
